/** Finds the name somebody probably meant. */

/** The known name with the fewest edits from `name`, unless even that one is unlike it. */
export function nearestName(name: string, known: Iterable<string>): string | undefined {
  const wanted = name.toLowerCase();
  let best: string | undefined;
  let fewest = Math.min(8, Math.floor(name.length / 3) + 1, name.length - 1) + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= fewest) continue;
    const distance = editDistance(wanted, candidate.toLowerCase());
    if (distance < fewest) [best, fewest] = [candidate, distance];
  }
  return best;
}

/** Insertions, deletions, substitutions, and swaps of neighbours, each counted once. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min(last[j]! + 1, current[j - 1]! + 1, last[j - 1]! + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        cost = Math.min(cost, beforeLast[j - 2]! + 1);
      current.push(cost);
    }
    [beforeLast, last] = [last, current];
  }
  return last[b.length]!;
}
