/** Circles in a graph of imports. Pure. */

/** By file: the files it imports, types included. */
export type ImportGraph = ReadonlyMap<string, readonly string[]>;

/**
 * One circle for each way back that a walk through the graph meets, as the files on it in the order of their
 * imports; none exactly when the graph has no circle.
 */
export function importCircles(graph: ImportGraph): readonly (readonly string[])[] {
  const circles: string[][] = [];
  const done = new Set<string>();
  const way: string[] = [];
  const walk = (file: string): void => {
    const start = way.indexOf(file);
    if (start >= 0) {
      circles.push(way.slice(start));
      return;
    }
    if (done.has(file)) return;
    way.push(file);
    for (const imported of graph.get(file) ?? []) walk(imported);
    way.pop();
    done.add(file);
  };
  for (const file of graph.keys()) walk(file);
  return circles;
}
