/**
 * An open log file, as written or compressed. It stays readable whatever happens to its name meanwhile; it
 * is recognised by its inode, and when it was compressed since, by how it begins.
 */
import { constants } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';

/** A beginning holds the time of the first entry in nanoseconds, which no two files share. */
const beginningBytes = 64;

/** Blocks are read in this size. */
export const blockBytes = 256 * 1024;
const compressedBlockBytes = 64 * 1024;

export class LogFile {
  readonly path: string;
  readonly isCompressed: boolean;
  readonly #handle: FileHandle;
  readonly #inode: string;
  #beginning: Buffer | undefined;

  private constructor(path: string, isCompressed: boolean, handle: FileHandle, inode: string) {
    this.path = path;
    this.isCompressed = isCompressed;
    this.#handle = handle;
    this.#inode = inode;
  }

  /** Undefined when there is no such file. */
  static async open(path: string): Promise<LogFile | undefined> {
    let handle: FileHandle;
    try {
      // Non-blocking, in case something put a pipe there. Links are followed: some runtimes link their logs.
      handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
    try {
      const facts = await handle.stat();
      if (!facts.isFile()) throw new Error(`the log ${path} is no regular file`);
      return new LogFile(path, path.endsWith('.gz'), handle, `${facts.dev}:${facts.ino}`);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  async size(): Promise<number> {
    return (await this.#handle.stat()).size;
  }

  /** Whether `path` names this file now; undefined when nothing is there. */
  async isAt(path: string): Promise<boolean | undefined> {
    try {
      const { dev, ino } = await stat(path);
      return `${dev}:${ino}` === this.#inode;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  }

  /** Whether both are one log, before and after compression. */
  async isSameAs(other: LogFile): Promise<boolean> {
    if (this.#inode === other.#inode) return true;
    const [mine, theirs] = await Promise.all([this.beginning(), other.beginning()]);
    return mine.length > 0 && mine.equals(theirs);
  }

  /** The first bytes of the log; fewer than asked for while there are no more. */
  async beginning(): Promise<Buffer> {
    if (this.#beginning?.length === beginningBytes) return this.#beginning;
    let beginning: Buffer = Buffer.alloc(0);
    if (this.isCompressed) {
      for await (const block of this.#inflated()) {
        beginning = Buffer.concat([beginning, block]);
        if (beginning.length >= beginningBytes) break;
      }
    } else beginning = await this.read(Buffer.alloc(beginningBytes), 0);
    this.#beginning = Buffer.from(beginning.subarray(0, beginningBytes));
    return this.#beginning;
  }

  /** Fills `into` from `position` on; shorter at the end of the file. Not for compressed files. */
  async read(into: Buffer, position: number): Promise<Buffer> {
    let length = 0;
    while (length < into.length) {
      const { bytesRead } = await this.#handle.read(into, length, into.length - length, position + length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return into.subarray(0, length);
  }

  /** The log from `offset` (of its own bytes, not of compressed ones) to its end. A block is overwritten by the next. */
  async *blocks(offset = 0): AsyncGenerator<Buffer> {
    if (this.isCompressed) {
      let skip = offset;
      for await (const block of this.#inflated()) {
        if (skip < block.length) yield block.subarray(skip);
        skip = Math.max(0, skip - block.length);
      }
      return;
    }
    const buffer = Buffer.allocUnsafeSlow(blockBytes);
    for (let position = offset; ; ) {
      const block = await this.read(buffer, position);
      if (block.length === 0) return;
      yield block;
      position += block.length;
    }
  }

  /** The bytes of the file itself; each block has memory of its own. */
  async *#raw(): AsyncGenerator<Buffer> {
    for (let position = 0; ; ) {
      const block = await this.read(Buffer.allocUnsafeSlow(compressedBlockBytes), position);
      if (block.length === 0) return;
      yield block;
      position += block.length;
    }
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  async *#inflated(): AsyncGenerator<Buffer> {
    const { createGunzip } = process.getBuiltinModule('node:zlib');
    const { pipeline } = process.getBuiltinModule('node:stream');
    const gunzip = createGunzip({ chunkSize: compressedBlockBytes });
    // Errors of either come out of the iteration below.
    pipeline(this.#raw(), gunzip, () => {});
    try {
      yield* gunzip as AsyncIterable<Buffer>;
    } finally {
      gunzip.destroy();
    }
  }
}
