/**
 * A text file that lines are appended to and that never grows past a limit: when it would, it becomes
 * `<path>.1` (replacing the one before) and a new one begins. So the newest half at least is always there,
 * and at most twice the limit lies on the disk. Calls must not overlap; the owner queues them.
 */
import { appendFile, mkdir, rename, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/** A file of lines that is renamed to `<path>.1` when it is full. */
export class RotatedLines {
  readonly #path: string;
  readonly #maxBytes: number;
  /** Bytes in the file; unknown until the first append has looked. */
  #size: number | undefined;

  constructor(path: string, maxBytes: number) {
    this.#path = path;
    this.#maxBytes = maxBytes;
  }

  /** Appends `lines`, each of which ends with a line break. Rejects with the file system's error. */
  async append(lines: string): Promise<void> {
    const bytes = Buffer.byteLength(lines);
    if (this.#size === undefined) {
      await mkdir(dirname(this.#path), { recursive: true });
      this.#size = await sizeOf(this.#path);
    }
    if (this.#size > 0 && this.#size + bytes > this.#maxBytes) {
      await rename(this.#path, `${this.#path}.1`);
      this.#size = 0;
    }
    try {
      await appendFile(this.#path, lines, { mode: 0o640 });
      this.#size += bytes;
    } catch (error) {
      // Folder or file may be gone, or only a part was written: look again next time.
      this.#size = undefined;
      throw error;
    }
  }
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}
