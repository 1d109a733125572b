/**
 * Reads many small files of the kernel (cgroups, /proc) into one buffer that is used again and again.
 *
 * Synchronously on purpose: these files are made in memory while they are read and wait for no disk, and a
 * trip through the thread pool costs ten times the read. Who reads hundreds gives the event loop a turn in
 * between. Files of a disk must never be read this way.
 */
import { closeSync, openSync, readSync } from 'node:fs';

/** Larger than any file that is read here, save on machines with thousands of block devices. */
const firstSize = 16 * 1024;

/** Read errors that say that what is measured has gone, or that this kernel has no such file. */
const absent = new Set(['ENOENT', 'ENODEV', 'ESRCH', 'ENOTDIR', 'EOPNOTSUPP', 'EINVAL', 'EACCES', 'EPERM']);

export class KernelFileReader {
  #buffer = Buffer.allocUnsafeSlow(firstSize);

  /** The file's text; `undefined` when it is not there, or was removed while it was being read. */
  read(path: string): string | undefined {
    let fd: number;
    try {
      fd = openSync(path, 'r');
    } catch (error) {
      return gone(error);
    }
    try {
      let length = 0;
      for (;;) {
        const read = readSync(fd, this.#buffer, length, this.#buffer.length - length, null);
        length += read;
        if (read === 0) break;
        if (length === this.#buffer.length) this.#grow();
        // A read this short is the whole of a small file; asking again would cost as much as the first time.
        else if (length < 2048) break;
      }
      return this.#buffer.toString('latin1', 0, length);
    } catch (error) {
      return gone(error);
    } finally {
      closeSync(fd);
    }
  }

  #grow(): void {
    const larger = Buffer.allocUnsafeSlow(this.#buffer.length * 2);
    this.#buffer.copy(larger);
    this.#buffer = larger;
  }
}

function gone(error: unknown): undefined {
  if (absent.has((error as NodeJS.ErrnoException).code ?? '')) return undefined;
  throw error;
}
