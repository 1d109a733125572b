/**
 * Removes a directory tree that somebody else made, perhaps with bad intent. It never follows a symbolic
 * link, never enters another mount (bind mounts of the same file system included), and copes with trees
 * deeper than a path can be long and with names that are not UTF-8.
 *
 * Files are reached through the descriptor of their directory, so swapping a directory for a link while
 * the walk is under way leads nowhere.
 */
import { randomUUID } from 'node:crypto';
import { closeSync } from 'node:fs';
import { lstat, rename, rmdir, unlink } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { children, entryPath, openDirectory } from './directory-handle.ts';
import type { SystemCallError } from './syscalls.ts';

/** A tree could not be removed completely. `path` is the entry that stayed. */
export class TreeRemovalError extends Error {
  override readonly name = 'TreeRemovalError';
  readonly path: string;
  readonly code: string | undefined;

  constructor(root: string, path: string, cause: unknown) {
    const code = (cause as NodeJS.ErrnoException | undefined)?.code;
    super(`${root} was not removed: ${path}: ${explain(code, cause)}`, { cause });
    this.path = path;
    this.code = code;
  }
}

function explain(code: string | undefined, cause: unknown): string {
  if (code === 'EPERM')
    return 'operation not permitted; it may be immutable or append-only (see lsattr, chattr -ia)';
  if (code === 'EXDEV' || code === 'EBUSY') return 'something is mounted there; unmount it first';
  return cause instanceof Error ? cause.message : String(cause);
}

/** Directories open at once: below this depth a subtree is moved up to the root of the removal. */
const maxDepth = 32;

/** Rounds over a directory that keeps being filled while it is emptied. */
const maxRounds = 10;

/**
 * Removes `path`, a directory, file or link, with all below it. The parent of `path` must be trustworthy.
 * Resolves when it is gone, also when it never was there; throws {@link TreeRemovalError} naming the entry
 * that could not be removed, after removing what it could reach before.
 */
export async function removeTree(path: string, signal?: AbortSignal): Promise<void> {
  const facts = await lstat(path).catch(absent);
  if (facts === undefined) return;
  try {
    if (!facts.isDirectory()) return await unlink(path).catch(absent);
    const parent = await openDirectory(undefined, dirname(path));
    try {
      const walk = new Removal(path, parent, signal);
      await walk.removeDirectory(parent, Buffer.from(basename(path)), path, 0);
    } finally {
      closeSync(parent);
    }
  } catch (error) {
    if (error instanceof TreeRemovalError || signal?.aborted) throw error;
    throw new TreeRemovalError(path, path, error);
  }
}

class Removal {
  readonly #path: string;
  readonly #signal: AbortSignal | undefined;
  readonly #parent: number;
  #moved = 0;

  constructor(path: string, parent: number, signal: AbortSignal | undefined) {
    this.#path = path;
    this.#parent = parent;
    this.#signal = signal;
  }

  /** Removes the directory `name` in the directory `parent`; `shown` is its path for messages. */
  async removeDirectory(parent: number, name: Buffer, shown: string, depth: number): Promise<void> {
    for (let round = 1; ; round++) {
      const movedBefore = this.#moved;
      await this.#empty(parent, name, shown, depth);
      try {
        return await rmdir(entryPath(parent, name));
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code === 'ENOENT') return;
        // What was moved up here is progress, not somebody filling the directory again.
        if (this.#moved > movedBefore && code === 'ENOTEMPTY') round = 0;
        if (code !== 'ENOTEMPTY' || round >= maxRounds) throw new TreeRemovalError(this.#path, shown, error);
      }
    }
  }

  async #empty(parent: number, name: Buffer, shown: string, depth: number): Promise<void> {
    let directory: number;
    try {
      directory = await openDirectory(parent, name);
    } catch (error) {
      if ((error as SystemCallError).code === 'ENOENT') return;
      throw new TreeRemovalError(this.#path, shown, error);
    }
    try {
      for await (const { name, isDirectory } of children(directory)) {
        this.#signal?.throwIfAborted();
        const path = `${shown}/${name.toString()}`;
        if (isDirectory) await this.#removeSubdirectory(directory, name, path, depth);
        else await this.#removeFile(directory, name, path);
      }
    } finally {
      closeSync(directory);
    }
  }

  async #removeFile(directory: number, name: Buffer, shown: string): Promise<void> {
    await unlink(entryPath(directory, name))
      .catch(absent)
      .catch((error: unknown) => {
        throw new TreeRemovalError(this.#path, shown, error);
      });
  }

  async #removeSubdirectory(directory: number, name: Buffer, shown: string, depth: number): Promise<void> {
    if (depth < maxDepth) return await this.removeDirectory(directory, name, shown, depth + 1);
    // Too deep to keep a descriptor for each level: continue from the top. The whole tree is being
    // removed, so its shape no longer matters.
    const top = Buffer.from(`${basename(this.#path)}/.removing-${randomUUID()}`);
    this.#moved++;
    try {
      await rename(entryPath(directory, name), entryPath(this.#parent, top));
    } catch (error) {
      throw new TreeRemovalError(this.#path, shown, error);
    }
  }
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT') return undefined;
  throw error;
}
