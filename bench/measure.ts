/** Numbers out of repeated measurements. Pure. */

/** The value below which `part` (0 to 1) of the samples lie, by nearest rank; NaN without samples. */
export function percentile(samples: readonly number[], part: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  const rank = Math.max(1, Math.ceil(part * sorted.length));
  return sorted[rank - 1] ?? Number.NaN;
}

/** The middle one, or the mean of the two in the middle. */
export function median(samples: readonly number[]): number {
  const sorted = samples.toSorted((a, b) => a - b);
  const half = sorted.length / 2;
  if (Number.isInteger(half)) return ((sorted[half - 1] ?? Number.NaN) + (sorted[half] ?? Number.NaN)) / 2;
  return sorted[Math.floor(half)] ?? Number.NaN;
}

/** Epoch milliseconds with a fraction: the clock that the runtime's own time stamps are on. */
export function now(): number {
  return performance.timeOrigin + performance.now();
}
