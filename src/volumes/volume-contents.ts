/**
 * Where the files of volumes come from when they are not on the node: what this room asks of whoever knows
 * the API server. Answers of objects already known come at once, so hundreds of volumes that show one object
 * cost no more questions than one.
 */
import type { Pod } from '../kubernetes/types.ts';

/** Key to content. */
export type ObjectEntries = ReadonlyMap<string, Uint8Array>;

export interface VolumeContents {
  /** `data` and `binaryData`; `undefined` when there is no such object. Rejects when that cannot be told. */
  configMap(namespace: string, name: string, signal: AbortSignal): Promise<ObjectEntries | undefined>;
  /** As {@link configMap}. */
  secret(namespace: string, name: string, signal: AbortSignal): Promise<ObjectEntries | undefined>;
  /** A token of the pod's service account, bound to the pod and kept fresh while the pod is there. */
  serviceAccountToken(
    wish: {
      readonly pod: Pod;
      readonly audience?: string | undefined;
      readonly expirationSeconds?: number | undefined;
      /** What the file holds now; an answer may be the same. */
      readonly existing?: string | undefined;
    },
    signal: AbortSignal,
  ): Promise<string>;
}
