/**
 * Pods of which only files are left. Pure: what is on disk, less what is wanted, looked after, or known to
 * the runtime, is an orphan; and only what has been one for a while is erased, since a pod that is just
 * starting may show in one place before the other.
 */

/** A pod that has left something on disk. */
export interface PodFiles {
  readonly uid: string;
  /** It has a directory below `<root>/pods`. */
  readonly hasDirectory: boolean;
}

/** What is known of the pods whose files lie around. */
export interface OrphanView {
  readonly onDisk: readonly PodFiles[];
  /** Uids of the pods that sources want; undefined until every source has been heard. */
  readonly desired: ReadonlySet<string> | undefined;
  /** Whether a pod has a worker. */
  readonly isLookedAfter: (uid: string) => boolean;
  /** Uids of all pods the runtime has anything of, those of other agents included. */
  readonly inRuntime: ReadonlySet<string>;
  /** Since when each orphan has been one, epoch milliseconds; what the last decision answered. */
  readonly since: ReadonlyMap<string, number>;
}

/** Uids of pods whose files go now, and since when (epoch milliseconds) the others have had no owner. */
export interface OrphanDecision {
  readonly erase: readonly string[];
  readonly since: ReadonlyMap<string, number>;
}

const settledMs = 60_000;
/** Logs alone may be another agent's that writes to the same place. */
const settledLogsMs = 10 * 60_000;

/**
 * Files go only when every source has been heard, nobody looks after the pod, the runtime has nothing of it,
 * and that has been so for a minute, or ten where only logs are left. Pure.
 */
export function decideOrphans(view: OrphanView, now: number): OrphanDecision {
  const { onDisk, desired, isLookedAfter, inRuntime, since } = view;
  const erase: string[] = [];
  const orphans = new Map<string, number>();
  for (const { uid, hasDirectory } of onDisk) {
    // Not a pod's name: something else lies there, such as lost+found.
    if (!/^[A-Za-z0-9][A-Za-z0-9.-]*$/.test(uid)) continue;
    if (!desired || desired.has(uid) || isLookedAfter(uid) || inRuntime.has(uid)) continue;
    const first = since.get(uid) ?? now;
    orphans.set(uid, first);
    if (now - first >= (hasDirectory ? settledMs : settledLogsMs)) erase.push(uid);
  }
  return { erase, since: orphans };
}
