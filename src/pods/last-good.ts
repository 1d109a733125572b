/**
 * Which pods of an earlier agent go on running although their source does not name them: the source has
 * not spoken in full yet, or it names a manifest it cannot read, and nothing proves that the pod was
 * taken out. Doubt keeps a pod.
 */
import type { Pod } from '../kubernetes/types.ts';
import type { PodRecord } from './pod-records.ts';
import { sourceOf } from './pod-version.ts';

/** What a source says besides its pods. */
export interface SourceWord {
  /** It has told everything it has. */
  readonly complete: boolean;
  /** Manifests it cannot use and knows no good version of; `pod` as far as it could be read. */
  readonly unreadable: readonly { readonly pod?: { readonly namespace: string; readonly name: string } }[];
}

/** The recorded pods to go on with, beside those that are `wanted` (by uid). */
export function lastGoodPods(
  records: Iterable<PodRecord>,
  wanted: ReadonlySet<string>,
  words: ReadonlyMap<string, SourceWord>,
): Pod[] {
  const kept: Pod[] = [];
  for (const { pod } of records) {
    if (wanted.has(pod.metadata.uid)) continue;
    const word = words.get(sourceOf(pod));
    if (word && (!word.complete || word.unreadable.some((manifest) => mayBe(manifest.pod, pod))))
      kept.push(pod);
  }
  return kept;
}

/** A manifest that could not be read at all may be any pod's. */
function mayBe(named: { namespace: string; name: string } | undefined, pod: Pod): boolean {
  if (!named) return true;
  const { name, namespace } = pod.metadata;
  return named.namespace === namespace && (name === named.name || name.startsWith(`${named.name}-`));
}
