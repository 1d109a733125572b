/**
 * The mount table of this process: what is mounted where, as the kernel says it now.
 */
import { isUtf8 } from 'node:buffer';
import { readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** One line of /proc/self/mountinfo. */
export interface Mount {
  readonly id: number;
  readonly parentId: number;
  /** `major:minor` of the device. */
  readonly device: string;
  /** The directory of the file system that is shown here; not `/` for bind mounts and inside containers. */
  readonly root: string;
  readonly mountPoint: string;
  /** The mount point as the kernel has it, where it is not UTF-8 and `mountPoint` only shows it. */
  readonly mountPointBytes?: Buffer;
  readonly options: readonly string[];
  /** Propagation and such: `shared:2`, `master:1`, `unbindable`; empty for a private mount. */
  readonly tags: readonly string[];
  readonly type: string;
  readonly source: string;
  readonly superOptions: readonly string[];
}

/** Undoes the kernel's octal escapes (space, tab, line break, backslash): `\040` is a space. */
function unescape(text: string): Buffer {
  const plain = text.includes('\\')
    ? text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
    : text;
  return Buffer.from(plain, 'latin1');
}

/** A path the way the table writes it. */
function escape(path: string): string {
  const latin1 = Buffer.from(path).toString('latin1');
  return latin1.replace(/[ \t\n\\]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`);
}

/**
 * Reads mountinfo text, given as one character for each byte (`latin1`): paths may hold any bytes. Lines
 * that do not have the documented shape are left out.
 */
export function parseMountInfo(latin1: string): Mount[] {
  return latin1
    .split('\n')
    .map(parseLine)
    .filter((mount) => mount !== undefined);
}

function parseLine(line: string): Mount | undefined {
  const fields = line.split(' ');
  const separator = fields.indexOf('-', 6);
  if (separator < 0 || fields.length < separator + 4) return undefined;
  const bytes = unescape(fields[4]!);
  return {
    id: Number(fields[0]),
    parentId: Number(fields[1]),
    device: fields[2]!,
    root: unescape(fields[3]!).toString(),
    mountPoint: bytes.toString(),
    ...(isUtf8(bytes) ? {} : { mountPointBytes: bytes }),
    options: fields[5]!.split(','),
    tags: fields.slice(6, separator),
    type: fields[separator + 1]!,
    source: unescape(fields[separator + 2]!).toString(),
    superOptions: fields[separator + 3]!.split(','),
  };
}

/** The mount table, in the order the kernel keeps it: a mount stands after the one it covers. */
export async function readMounts(): Promise<Mount[]> {
  return parseMountInfo(await readText());
}

let running: Promise<string> | undefined;
let following: Promise<string> | undefined;

/**
 * The table as text. Callers that come while it is being read share the read after it, never the one that
 * runs: it might have passed the line they are about. A hundred pods going down at once thus cost a few
 * reads, not hundreds.
 */
function readText(): Promise<string> {
  if (running === undefined) return start();
  following ??= running
    .catch(() => {})
    .then(() => {
      following = undefined;
      return start();
    });
  return following;
}

function start(): Promise<string> {
  const read = readFile('/proc/self/mountinfo', 'latin1').finally(() => {
    if (running === read) running = undefined;
  });
  running = read;
  return read;
}

/** Whether `path` is `directory` or lies below it; both absolute and without `..`. */
export function isAtOrBelow(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory === '/' ? '/' : `${directory}/`);
}

/**
 * The mounts on `directory` and below it now, in table order. Links in the parent of `directory` are
 * resolved, as the kernel does.
 */
export async function mountsAtOrBelow(directory: string): Promise<Mount[]> {
  const exact = await mountTablePath(directory);
  const escaped = escape(exact);
  const lines = (await readText()).split('\n').filter((line) => line.includes(escaped));
  return parseMountInfo(lines.join('\n')).filter(({ mountPoint }) => isAtOrBelow(mountPoint, exact));
}

/** The uppermost mount on exactly `path`, if there is one. */
export async function mountAt(path: string): Promise<Mount | undefined> {
  const exact = await mountTablePath(path);
  return (await mountsAtOrBelow(path)).findLast(({ mountPoint }) => mountPoint === exact);
}

/** The mount that `path`, a real path, lies in: the uppermost on the nearest mount point. Pure. */
export function enclosingMount(mounts: readonly Mount[], path: string): Mount | undefined {
  let nearest: Mount | undefined;
  for (const candidate of mounts) {
    const isNearer = candidate.mountPoint.length >= (nearest?.mountPoint.length ?? 0);
    if (isNearer && isAtOrBelow(path, candidate.mountPoint)) nearest = candidate;
  }
  return nearest;
}

/**
 * The path as the mount table spells it: links in the parent are resolved, the last element is kept as it
 * is, and a parent that does not exist leaves the path unchanged.
 */
export async function mountTablePath(path: string): Promise<string> {
  if (path === '/') return path;
  try {
    return join(await realpath(dirname(path)), basename(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return path;
    throw error;
  }
}
