/**
 * Names of a container's log files: `<attempt>.log` is written to, `<attempt>.log.<YYYYMMDD-hhmmss>` was
 * rotated away at that local time, and `….gz` is the same compressed. `….tmp` is an unfinished compression.
 */
import { basename, dirname } from 'node:path';

export interface RotatedName {
  /** Without `.gz`. */
  readonly name: string;
  /** The file is there as it was written. */
  readonly isPlain: boolean;
  /** It is there compressed; both may be true after a crash. */
  readonly isCompressed: boolean;
}

/** The rotated parts of the log `live`, oldest first, among the names in its directory. */
export function rotatedNames(names: readonly string[], live: string): RotatedName[] {
  const found = new Map<string, RotatedName>();
  for (const entry of names) {
    if (!entry.startsWith(`${live}.`)) continue;
    const match = /^(\.\d{8}-\d{6})(\.gz)?$/.exec(entry.slice(live.length));
    if (!match) continue;
    const name = `${live}${match[1]}`;
    const isCompressed = match[2] !== undefined;
    const other = found.get(name);
    found.set(name, {
      name,
      isPlain: !isCompressed || (other?.isPlain ?? false),
      isCompressed: isCompressed || (other?.isCompressed ?? false),
    });
  }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Compressions of `live` that were not finished. */
export function unfinishedNames(names: readonly string[], live: string): string[] {
  return names.filter((name) => name.startsWith(`${live}.`) && name.endsWith('.tmp'));
}

/**
 * The name a log gets when it is rotated at `now`. It sorts behind `newest`, the newest there is, also when
 * the clock was set back or two rotations fall into one second.
 */
export function rotatedName(live: string, now: number, newest: string | undefined): string {
  for (let at = now; ; at += 1000) {
    const name = `${live}.${localStamp(new Date(at))}`;
    if (newest === undefined || name > newest) return name;
    at = Math.max(at, (stampTime(newest.slice(live.length + 1)) ?? at) - 1000);
  }
}

function localStamp(time: Date): string {
  const two = (value: number) => String(value).padStart(2, '0');
  const date = `${String(time.getFullYear()).padStart(4, '0')}${two(time.getMonth() + 1)}${two(time.getDate())}`;
  return `${date}-${two(time.getHours())}${two(time.getMinutes())}${two(time.getSeconds())}`;
}

function stampTime(stamp: string): number | undefined {
  const found = /^(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)$/.exec(stamp);
  if (!found) return undefined;
  const [year, month, day, hour, minute, second] = found.slice(1).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  return new Date(year, month - 1, day, hour, minute, second).getTime();
}

/** The attempt of a live log's name, undefined for any other. */
export function attemptOfLive(name: string): number | undefined {
  const found = /^(\d+)\.log$/.exec(name);
  return found ? Number(found[1]) : undefined;
}

/** Directory and name of a live log's path. */
export function splitLogPath(path: string): { directory: string; live: string } {
  return { directory: dirname(path), live: basename(path) };
}
