/** Finds the known name that a mistyped one most likely stands for. */

/** Longer texts are no misspelt names, and comparing them would cost. */
const longestCompared = 64;

/** The closest of `known` to `name`, or undefined when none is close enough to be meant. */
export function nearestName(name: string, known: Iterable<string>): string | undefined {
  if (name.length > longestCompared) return undefined;
  const lower = name.toLowerCase();
  let best: string | undefined;
  // Two slips in a short name make another word; long names may have more of them, but not any number.
  let bestDistance = Math.min(8, Math.max(2, Math.floor(name.length / 3)), name.length - 1) + 1;
  for (const candidate of known) {
    const distance = editDistance(lower, candidate.toLowerCase(), bestDistance);
    if (distance < bestDistance && distance < candidate.length) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Insertions, deletions, substitutions and swaps of neighbours between two words, or `limit` when more. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min(row[j - 1]! + 1, previous[j]! + 1, previous[j - 1]! + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, beforePrevious[j - 2]! + 1);
      }
      row.push(cost);
    }
    beforePrevious = previous;
    previous = row;
  }
  return Math.min(previous[b.length]!, limit);
}
