/**
 * A place that pods come from. A source delivers its whole truth each time: every pod it wants on this
 * node, and every manifest it cannot use. What it leaves out of a complete update is to be stopped.
 */
import type { Pod } from '../kubernetes/types.ts';
import type { ManifestError, SourceName } from './manifest-error.ts';

export interface SourceUpdate {
  readonly source: SourceName;
  /** Objects are shared and must not be changed; an unchanged pod is the same object as before. */
  readonly pods: readonly Pod[];
  readonly errors: readonly ManifestError[];
  /**
   * False while the source has not yet seen all it has (its server does not answer, say): the pods are
   * wanted, but nothing may be concluded from the absence of others.
   */
  readonly complete: boolean;
}

export interface PodSource {
  readonly name: SourceName;
  /**
   * Delivers an update at once when the first look is done, then whenever something changed. Resolves when
   * `signal` is aborted; rejects only on a mistake in the program.
   */
  run(listener: (update: SourceUpdate) => void, signal: AbortSignal): Promise<void>;
}

/** What a decoder made of one text: the pods in it and what is wrong with the others. */
export interface DecodedManifest {
  readonly pods: readonly Pod[];
  readonly errors: readonly Omit<ManifestError, 'keepsLastGood'>[];
}

/** Turns the bytes of a manifest into pods; never throws. */
export type DecodeManifest = (content: Uint8Array, origin: string) => DecodedManifest;
