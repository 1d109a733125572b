/** Files of cgroups and the shapes they come in: one number, a table of names and numbers, a list of processes. */
import { KernelFileReader } from '../kernel-file-reader.ts';
import type { CgroupUsage, CpuUsage } from './cgroup-usage.ts';

/** Reads the files of a cgroup's directory; what is not there is told as absent. */
export class CgroupFiles {
  readonly #files = new KernelFileReader();

  /** Any file of the kernel, through the same buffer. */
  text(path: string): string | undefined {
    return this.#files.read(path);
  }

  /** Absent too where the file says something other than a number, as "max" does. */
  number(directory: string | undefined, file: string): number | undefined {
    if (directory === undefined) return undefined;
    const text = this.text(`${directory}/${file}`);
    if (text === undefined) return undefined;
    const value = Number.parseInt(text, 10);
    return Number.isNaN(value) ? undefined : value;
  }

  /** Empty when it is not there. */
  table(directory: string | undefined, file: string): string {
    return (directory === undefined ? undefined : this.text(`${directory}/${file}`)) ?? '';
  }

  /** The processes of the cgroup itself. */
  processes(directory: string | undefined): CgroupUsage['processes'] {
    const text = this.table(directory, 'cgroup.procs');
    let count = 0;
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++;
    const first = Number.parseInt(text, 10);
    return { count, first: first > 0 ? first : undefined };
  }
}

/** The directory of a cgroup in a tree that is mounted at `tree`; absent where the tree is. */
export function directoryIn(tree: string | undefined, cgroup: string): string | undefined {
  return tree === undefined ? undefined : `${tree}${cgroup === '/' ? '' : cgroup}`;
}

/** The number behind `name` in a table of lines `name number`. */
export function entry(table: string, name: string): number | undefined {
  const start = table.startsWith(`${name} `) ? 0 : table.indexOf(`\n${name} `) + 1;
  if (start === 0 && !table.startsWith(`${name} `)) return undefined;
  return Number.parseInt(table.slice(start + name.length + 1, start + name.length + 22), 10);
}

/** How much bandwidth control held the cgroup back; `throttled` and `burst` name the times in the table. */
export function bandwidth(table: string, throttled: string, burst: string, toNs: number): Partial<CpuUsage> {
  const scaled = (name: string) => {
    const value = entry(table, name);
    return value === undefined ? undefined : value * toNs;
  };
  return defined({
    periods: entry(table, 'nr_periods'),
    throttledPeriods: entry(table, 'nr_throttled'),
    throttledNs: scaled(throttled),
    burstPeriods: entry(table, 'nr_bursts'),
    burstNs: scaled(burst),
  });
}

type Defined<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

/** Without the fields that are undefined. */
export function defined<T extends object>(fields: T): Defined<T> {
  const kept: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) kept[name] = value;
  return kept as Defined<T>;
}
