/**
 * Which user and group ids of the node are there for pods: what `/etc/subuid` and `/etc/subgid` give to the
 * user `kubelet`, or a range above all ids of the node where they give it nothing.
 *
 * Differs from the kubelet: the files are read directly, so neither the program getsubids nor an account
 * named kubelet has to exist; sources other than the files are not asked.
 */

/** `count` ids from `first` on. */
export interface IdRange {
  readonly first: number;
  readonly count: number;
}

/** The subordinate ids cannot be used as they are; the message says what they have to be. */
export class SubIdError extends Error {
  override readonly name = 'SubIdError';
}

/** Ids below it belong to the node itself. */
const firstSubordinate = 65_536;
const owner = 'kubelet';

/** Texts of the files that say which ids are the kubelet's to hand out; absent files are undefined. */
export interface SubIdFiles {
  /** Text of `/etc/subuid`; `undefined` where there is none. */
  readonly subuid: string | undefined;
  readonly subgid: string | undefined;
  /** Text of `/etc/passwd`, to find entries by the number of the user. */
  readonly passwd?: string | undefined;
}

/**
 * The ids for `maxPods` pods of `idsPerPod` ids each. Throws {@link SubIdError} when the entries of the
 * user kubelet are not one range, the same for users and groups, that starts and ends at multiples of
 * `idsPerPod` and is large enough.
 */
export function podIdRange(
  { subuid = '', subgid = '', passwd = '' }: SubIdFiles,
  { maxPods, idsPerPod }: { maxPods: number; idsPerPod: number },
): IdRange {
  const names = [owner, ...numberOf(passwd)];
  const users = entriesOf(subuid, names);
  const groups = entriesOf(subgid, names);
  if (users.length === 0 && groups.length === 0) {
    const first = Math.max(firstSubordinate, idsPerPod);
    return { first, count: Math.min(idsPerPod * maxPods, 2 ** 32 - first) };
  }
  const [range] = users;
  if (!range || users.length > 1 || groups.length !== 1) {
    throw new SubIdError(
      `/etc/subuid has ${users.length} ranges for the user ${owner} and /etc/subgid has ${groups.length}; ` +
        'both must have one, the same, or none',
    );
  }
  const problem = problemOf(range, { maxPods, idsPerPod });
  if (problem) {
    throw new SubIdError(
      `/etc/subuid gives the user ${owner} ${range.count} ids from ${range.first} on; ${problem}`,
    );
  }
  const [group] = groups;
  if (group?.first !== range.first || group.count !== range.count) {
    throw new SubIdError(`the range of the user ${owner} in /etc/subgid must be that in /etc/subuid`);
  }
  return range;
}

function problemOf(
  { first, count }: IdRange,
  { maxPods, idsPerPod }: { maxPods: number; idsPerPod: number },
): string | undefined {
  if (first < firstSubordinate) return `the first must be ${firstSubordinate} or above`;
  if (first % idsPerPod !== 0) return `the first must be a multiple of ${idsPerPod}`;
  if (count % idsPerPod !== 0) return `there must be a multiple of ${idsPerPod}`;
  if (first + count > 2 ** 32) return 'ids end at 4294967295';
  const wanted = maxPods * idsPerPod;
  return count < wanted ? `there must be ${wanted}, enough for ${maxPods} pods` : undefined;
}

/** Ranges of whoever goes by one of `names`; lines are `owner:first:count`, others do not count. */
function entriesOf(text: string, names: readonly string[]): IdRange[] {
  return text.split('\n').flatMap((line) => {
    const match = /^\s*([^:#\s]+):(\d+):(\d+)\s*$/.exec(line);
    if (!match || !names.includes(match[1]!)) return [];
    const [first, count] = [Number(match[2]), Number(match[3])];
    return count > 0 ? [{ first, count }] : [];
  });
}

/** The number of the user kubelet, where there is one. */
function numberOf(passwd: string): string[] {
  return [...passwd.matchAll(/^kubelet:[^:\n]*:(\d+):/gm)].map((match) => match[1]!);
}
