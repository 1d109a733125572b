/**
 * Files that change all at once. They lie in a directory named after the time, the link `..data` leads to
 * it, and for every name at the top a link leads through `..data`:
 *
 *     ..2026_01_01_12_00_00.x7Gh2k/app.conf
 *     ..data   → ..2026_01_01_12_00_00.x7Gh2k
 *     app.conf → ..data/app.conf
 *
 * A new content is written beside the old one, then `..data` is replaced in one step. Guarantees: at every
 * moment, after a crash at any line included, `..data` leads to a complete content, the old or the new one;
 * the next run clears away what a crash has left. Unchanged content is not written. Runs on one directory
 * must not overlap.
 */
import {
  chmod,
  chown,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { basename, dirname, join, posix } from 'node:path';

export interface WrittenFile {
  readonly content: Uint8Array;
  /** Permission bits, exact whatever the umask. */
  readonly mode: number;
  /** Whose file it is; root's when absent. */
  readonly uid?: number | undefined;
}

/** By path: relative to the volume, with `/` between elements. */
export type Files = ReadonlyMap<string, WrittenFile>;

/** What the writer does to the disk; tests let each of these fail. */
export const writerFileSystem = {
  chmod,
  chown,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  unlink,
  writeFile,
};
export type WriterFileSystem = typeof writerFileSystem;

/** A path of a file would lead out of its volume, collide with another one or break a limit. */
export class FilePathError extends Error {
  override readonly name = 'FilePathError';
  constructor(path: string, problem: string) {
    super(`invalid path ${JSON.stringify(path)}: ${problem}`);
  }
}

const longestPath = 4096;
const longestName = 255;
const directoryMode = 0o755;
const dataLink = '..data';
const nextDataLink = '..data_tmp';

/** The path without needless parts, safe to join to a directory. Throws {@link FilePathError}. */
export function safeFilePath(path: string): string {
  if (path === '') throw new FilePathError(path, 'must not be empty');
  if (path.includes('\0')) throw new FilePathError(path, 'must not hold a NUL byte');
  if (posix.isAbsolute(path)) throw new FilePathError(path, 'must be relative');
  if (path.split('/').includes('..')) throw new FilePathError(path, "must not contain '..'");
  const clean = posix.normalize(path).replace(/\/$/, '');
  if (clean === '.') throw new FilePathError(path, 'must name a file');
  if (clean.startsWith('..')) throw new FilePathError(path, "must not start with '..'");
  if (Buffer.byteLength(clean) > longestPath) {
    throw new FilePathError(path, `must not be longer than ${longestPath} bytes`);
  }
  if (clean.split('/').some((name) => Buffer.byteLength(name) > longestName)) {
    throw new FilePathError(path, `no element may be longer than ${longestName} bytes`);
  }
  return clean;
}

/**
 * Makes `directory`, which exists, show exactly `files`; with `group` they are readable by it. Directories
 * and files in it that the writer has not made are left alone. Resolves with true when anything was written.
 */
export async function writeFilesAtomically(options: {
  directory: string;
  files: Files;
  /** The pod's `fsGroup`. */
  group?: number | undefined;
  /** Epoch milliseconds, for the directory's name. */
  now?: number;
  fs?: WriterFileSystem;
}): Promise<boolean> {
  const { directory, group, now = Date.now(), fs = writerFileSystem } = options;
  const files = checkedFiles(options.files);
  const writer = new Writer({ directory, group, fs });
  const current = await writer.current();
  if (current !== undefined && (await writer.holds(current, files))) {
    await writer.show(files, current);
    return false;
  }
  const fresh = await writer.write(files, now);
  await writer.show(files, fresh);
  return true;
}

function checkedFiles(files: Files): Files {
  const checked = new Map([...files].map(([path, file]) => [safeFilePath(path), file] as const));
  for (const path of checked.keys()) {
    for (let parent = dirname(path); parent !== '.'; parent = dirname(parent)) {
      if (checked.has(parent)) throw new FilePathError(path, `${JSON.stringify(parent)} is a file as well`);
    }
  }
  return checked;
}

class Writer {
  readonly #directory: string;
  readonly #group: number | undefined;
  readonly #fs: WriterFileSystem;

  constructor(options: { directory: string; group: number | undefined; fs: WriterFileSystem }) {
    this.#directory = options.directory;
    this.#group = options.group;
    this.#fs = options.fs;
  }

  /** The name of the directory with the content shown now. */
  async current(): Promise<string | undefined> {
    const target = await this.#fs.readlink(join(this.#directory, dataLink)).catch(absent);
    const isOwn = target !== undefined && /^\.\.[^/]+$/.test(target) && !target.startsWith(dataLink);
    return isOwn ? target : undefined;
  }

  /** Whether the directory `name` has exactly this content. */
  async holds(name: string, files: Files): Promise<boolean> {
    const root = join(this.#directory, name);
    const entries = await this.#fs.readdir(root, { recursive: true, withFileTypes: true }).catch(absent);
    const present = entries?.filter((entry) => !entry.isDirectory());
    if (present?.length !== files.size) return false;
    for (const [path, { content }] of files) {
      const written = await this.#fs.readFile(join(root, path)).catch(absent);
      if (written === undefined || !written.equals(content)) return false;
    }
    return true;
  }

  /** Writes the content beside the old one and switches over. Resolves with its directory's name. */
  async write(files: Files, now: number): Promise<string> {
    const fs = this.#fs;
    const prefix = join(this.#directory, `..${timestamp(now)}.`);
    const fresh = await fs.mkdtemp(prefix);
    try {
      await this.#fill(fresh, files);
      const next = join(this.#directory, nextDataLink);
      await fs.rm(next, { force: true });
      await fs.symlink(basename(fresh), next);
      await fs.rename(next, join(this.#directory, dataLink));
    } catch (error) {
      // A full disk should not stay full of attempts.
      if ((await this.current().catch(() => undefined)) !== basename(fresh)) {
        await fs.rm(fresh, { recursive: true, force: true }).catch(() => {});
      }
      throw error;
    }
    return basename(fresh);
  }

  /** Leads every name at the top through `..data`, and takes away what belongs to no content any more. */
  async show(files: Files, current: string): Promise<void> {
    const wanted = new Set([...files.keys()].map((path) => path.split('/')[0]!));
    const present = await this.#fs.readdir(this.#directory, { withFileTypes: true });
    const links = new Map<string, string>();
    for (const entry of present) {
      if (!entry.isSymbolicLink()) continue;
      const target = await this.#fs.readlink(join(this.#directory, entry.name)).catch(absent);
      if (target !== undefined) links.set(entry.name, target);
    }
    const occupied = new Set(present.filter((entry) => !entry.isSymbolicLink()).map(({ name }) => name));
    for (const name of wanted) {
      if (links.get(name) === `${dataLink}/${name}`) continue;
      // What else stands there may be where another volume is mounted.
      if (!occupied.has(name)) await this.#link(name);
    }
    for (const [name, target] of links) {
      const isStale = !wanted.has(name) && target === `${dataLink}/${name}`;
      if (isStale || name === nextDataLink) await this.#fs.unlink(join(this.#directory, name)).catch(absent);
    }
    for (const name of occupied) {
      if (!name.startsWith('..') || name === current) continue;
      await this.#fs.rm(join(this.#directory, name), { recursive: true, force: true });
    }
  }

  async #link(name: string): Promise<void> {
    const next = join(this.#directory, nextDataLink);
    await this.#fs.rm(next, { force: true });
    await this.#fs.symlink(`${dataLink}/${name}`, next);
    await this.#fs.rename(next, join(this.#directory, name));
  }

  async #fill(root: string, files: Files): Promise<void> {
    const made = new Set([root]);
    await this.#own(root, directoryMode, undefined);
    for (const [path, { content, mode, uid }] of files) {
      const parents: string[] = [];
      for (let parent = dirname(path); parent !== '.'; parent = dirname(parent)) parents.unshift(parent);
      for (const parent of parents.map((one) => join(root, one))) {
        if (made.has(parent)) continue;
        await this.#fs.mkdir(parent);
        await this.#own(parent, directoryMode, undefined);
        made.add(parent);
      }
      const target = join(root, path);
      // Readable by nobody else until it has its mode.
      await this.#fs.writeFile(target, content, { mode: 0o600, flag: 'wx' });
      await this.#own(target, mode, uid ?? 0);
    }
  }

  /** `uid` is absent for directories. */
  async #own(path: string, mode: number, uid: number | undefined): Promise<void> {
    const group = this.#group;
    if (uid || group !== undefined) await this.#fs.chown(path, uid ?? 0, group ?? 0);
    const forGroup = group === undefined ? 0 : uid === undefined ? 0o2550 : 0o440;
    await this.#fs.chmod(path, mode | forGroup);
  }
}

/** In UTC: `2026_01_01_12_00_00`. */
function timestamp(now: number): string {
  return new Date(now).toISOString().slice(0, 19).replaceAll(/[-T:]/g, '_');
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT' || error.code === 'EINVAL' || error.code === 'ENOTDIR') return undefined;
  throw error;
}
