/** CPU lists as Linux writes them: `0-3,8,10-11`. */

const HIGHEST_CPU = 8191;

/** CPU numbers in rising order, each once; undefined when `list` is no CPU list. Empty text: no CPU. */
export function parseCpuSet(list: string): number[] | undefined {
  const cpus = new Set<number>();
  if (list.trim() === '') return [];
  for (const part of list.split(',')) {
    const range = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(part.trim());
    if (!range) return undefined;
    const first = Number(range[1]);
    const last = Number(range[2] ?? range[1]);
    if (first > last || last > HIGHEST_CPU) return undefined;
    for (let cpu = first; cpu <= last; cpu++) cpus.add(cpu);
  }
  return [...cpus].sort((a, b) => a - b);
}
