/**
 * What to tell a person about pods, from one look at the read-only port's `/pods` to the next. Pure.
 */

/** The part of a PodList that is looked at. */
export interface PodListView {
  items: readonly {
    metadata: { name: string; namespace?: string; uid?: string };
    status?: {
      phase?: string;
      podIP?: string;
      conditions?: readonly { type: string; status: string }[];
      containerStatuses?: readonly {
        name: string;
        state?: {
          waiting?: { reason?: string; message?: string };
          terminated?: { reason?: string; exitCode?: number };
        };
      }[];
    };
  }[];
}

export interface PodProgress {
  name: string;
  ready: boolean;
  address: string;
  /** What keeps it from being ready, in few words. */
  waiting: string;
}

/** The pods by a name that is theirs for good. */
export function readProgress(list: PodListView): Map<string, PodProgress> {
  return new Map(
    list.items.map(({ metadata, status }) => {
      const waiting = (status?.containerStatuses ?? []).flatMap(({ name, state }) => {
        const reason = state?.waiting?.reason ?? state?.terminated?.reason;
        const message = state?.waiting?.message;
        return reason === undefined
          ? []
          : [`${name}: ${reason}${message === undefined ? '' : ` (${message})`}`];
      });
      const ready = (status?.conditions ?? []).some(
        ({ type, status }) => type === 'Ready' && status === 'True',
      );
      const name = `${metadata.namespace ?? 'default'}/${metadata.name}`;
      const progress = {
        name,
        ready,
        address: status?.podIP ?? '',
        waiting: waiting.join(', ') || (status?.phase ?? 'Pending'),
      };
      return [metadata.uid ?? name, progress];
    }),
  );
}

/** One line for each pod that became ready, ceased to be, or went away. */
export function progressLines(
  before: ReadonlyMap<string, PodProgress>,
  after: ReadonlyMap<string, PodProgress>,
): string[] {
  const lines: string[] = [];
  for (const [uid, pod] of after) {
    const was = before.get(uid);
    if (pod.ready && was?.ready !== true)
      lines.push(`pod ${pod.name} is ready at ${pod.address || 'no address'}`);
    if (!pod.ready && was?.ready === true) lines.push(`pod ${pod.name} is no longer ready: ${pod.waiting}`);
  }
  for (const [uid, pod] of before) if (!after.has(uid)) lines.push(`pod ${pod.name} is gone`);
  return lines;
}
