/**
 * How fast processor time is being used (`usageNanoCores`): the difference of two readings over the time
 * between them. Keeps one earlier reading for each cgroup, and forgets those that are not read any more.
 */

/** Readings closer together say more of chance than of use, milliseconds. */
export const shortestWindowMs = 100;
/** Readings further apart say nothing of now, milliseconds; the kubelet keeps them as long. */
const longestWindowMs = 600_000;

interface Reading {
  at: number;
  totalNs: number;
  /** The pass in which it was seen last. */
  pass: number;
  rate: number | undefined;
}

export class UsageRates {
  readonly #readings = new Map<string, Reading>();
  #pass = 0;

  /** Whether a rate can be told for `cgroup` now. */
  knows(cgroup: string, now: number): boolean {
    const before = this.#readings.get(cgroup);
    return before !== undefined && now - before.at <= longestWindowMs;
  }

  /**
   * Takes a reading; the nanoseconds used in each second. `undefined` without an earlier reading to compare
   * with. A cgroup that was `createdAt` since then had used nothing at that moment.
   */
  take(cgroup: string, at: number, totalNs: number, createdAt?: number): number | undefined {
    let before = this.#readings.get(cgroup);
    if (before === undefined) {
      before = {
        at: createdAt ?? at,
        totalNs: createdAt === undefined ? totalNs : 0,
        pass: 0,
        rate: undefined,
      };
      this.#readings.set(cgroup, before);
    }
    before.pass = this.#pass;
    const window = at - before.at;
    if (window < shortestWindowMs) return before.rate;
    // Counters only fall when a cgroup was made anew under its old name.
    const isComparable = window <= longestWindowMs && totalNs >= before.totalNs;
    before.rate = isComparable ? Math.round(((totalNs - before.totalNs) * 1000) / window) : undefined;
    before.at = at;
    before.totalNs = totalNs;
    return before.rate;
  }

  /** Ends a pass over everything; what was not read in it is forgotten. */
  endPass(): void {
    for (const [cgroup, { pass }] of this.#readings) if (pass !== this.#pass) this.#readings.delete(cgroup);
    this.#pass++;
  }
}
