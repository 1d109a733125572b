/**
 * Makes the volumes of an orphaned pod safe to remove: unmounts them, and then refuses when files lie where
 * only a persistent volume should have been mounted. They may be somebody's data, written while the volume
 * was not there; a person has to decide.
 */
import { join } from 'node:path';
import { namesIn } from '../../linux/directory-names.ts';
import { unmountAtOrBelow } from '../../linux/mounts.ts';

/** Files that no pod owns are in the way of removing an orphaned pod. */
export class OrphanHoldsDataError extends Error {
  override readonly name = 'OrphanHoldsDataError';
  readonly path: string;

  constructor(uid: string, path: string) {
    super(
      `the orphaned pod ${uid} stays: ${path} is not empty although no volume is mounted there; ` +
        'move what is needed and empty it',
    );
    this.path = path;
  }
}

/** Volumes whose content is the pod's own, and ends with it. */
const ownKinds = new Set(
  ['empty-dir', 'configmap', 'secret', 'projected', 'downward-api'].map((kind) => `kubernetes.io~${kind}`),
);

/** Throws {@link OrphanHoldsDataError}, or `StillMountedError` when something cannot be unmounted. */
export async function releaseOrphanedVolumes(
  podDirectory: string,
  uid: string,
  signal: AbortSignal,
): Promise<void> {
  await unmountAtOrBelow(podDirectory, signal);
  const volumes = join(podDirectory, 'volumes');
  for (const kind of await namesIn(volumes)) {
    if (ownKinds.has(kind)) continue;
    for (const volume of await namesIn(join(volumes, kind))) {
      const path = join(volumes, kind, volume);
      const held = await firstHeld(path);
      if (held !== undefined) throw new OrphanHoldsDataError(uid, held);
    }
  }
}

/** The first thing in a volume's directory that is not what a kubelet itself puts there. */
async function firstHeld(path: string): Promise<string | undefined> {
  for (const name of await namesIn(path)) {
    const entry = join(path, name);
    if (name === 'vol_data.json') continue;
    if (name === 'mount' && (await namesIn(entry)).length === 0) continue;
    return entry;
  }
  return undefined;
}
