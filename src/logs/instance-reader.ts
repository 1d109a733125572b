/**
 * Reads one instance of a container through all its parts, oldest first, and when asked on while it is
 * written to and rotated. Each byte is read once, whatever rotation does meanwhile: files are held open, and
 * a part that was renamed or compressed is recognised.
 */
import { type Clock, sleep } from '../concurrency/clock.ts';
import { type LogStart, openFrom, openInstance, openRotated } from './instance-files.ts';
import { blockBytes, type LogFile } from './log-file.ts';
import type { LogText } from './log-text.ts';

interface Part {
  readonly file: LogFile;
  position: number;
}

export interface InstanceReaderOptions {
  /** Path of the instance's live log. */
  readonly path: string;
  readonly start: LogStart;
  readonly text: LogText;
  /** Hands on what the text has; resolves when more may come. */
  readonly write: () => Promise<void>;
  readonly clock: Clock;
}

/** What a runtime had under way when its log was rotated still reaches the old file; after this it does not. */
const lateWritesMs = 10_000;
/** A write that is seen half done is whole long before this. */
const halfWriteMs = 50;

export class InstanceReader {
  readonly #options: InstanceReaderOptions;
  /** Oldest first; the last is or was the live one. */
  readonly #parts: Part[] = [];
  /** The part before the first of `#parts`, while something may still be written to it. */
  #trailing: (Part & { readonly since: number }) | undefined;
  #endsInLine = false;

  constructor(options: InstanceReaderOptions) {
    this.#options = options;
  }

  /** Reads what is there now; false when there is no log at all. */
  async readAll(): Promise<boolean> {
    try {
      await this.#open(true);
      await this.#drain();
      return this.#parts.length > 0;
    } finally {
      await this.#close();
    }
  }

  /**
   * Reads until the instance `isOver`; all it wrote before that is read. `wait` resolves when something may
   * have changed.
   */
  async follow(isOver: () => boolean, wait: () => Promise<void>): Promise<void> {
    const { text, write } = this.#options;
    try {
      for (;;) {
        const wasOver = isOver();
        await this.#drain();
        if (text.isFull) return;
        if (await this.#hasMore(wasOver)) continue;
        if (wasOver) return;
        text.release();
        await write();
        await wait();
      }
    } finally {
      await this.#close();
    }
  }

  /** Opens what there is to read after what was read; false when there is nothing. */
  async #hasMore(wasOver: boolean): Promise<boolean> {
    const last = this.#parts.at(-1);
    if (!last) return await this.#open(wasOver);
    if ((await last.file.isAt(this.#options.path)) !== false) return false;
    const { live, rotated } = await openInstance(this.#options.path);
    if (!live) return false;
    try {
      const between = await partsSince(last.file, rotated);
      this.#parts.push(...[...between, live].map((file) => ({ file, position: 0 })));
    } catch (error) {
      await live.close();
      throw error;
    }
    // What was written until the new file was there belongs to the old one.
    if (this.#endsInLine) await sleep(this.#options.clock, halfWriteMs);
    return true;
  }

  /** With `always`, also what was rotated away when there is no live file. */
  async #open(always: boolean): Promise<boolean> {
    const files = await openInstance(this.#options.path);
    if (!files.live && !always) return false;
    const logs = await openFrom(files, this.#options.start).catch(async (error: unknown) => {
      await files.live?.close();
      throw error;
    });
    this.#parts.push(...logs.map(({ file, offset }) => ({ file, position: offset })));
    return logs.length > 0;
  }

  /** Reads every part to its end and lets go of all but the last. */
  async #drain(): Promise<void> {
    const { text, clock } = this.#options;
    if (this.#trailing) {
      await this.#read(this.#trailing);
      if (clock.now() - this.#trailing.since > lateWritesMs) await this.#trail(undefined);
    }
    for (let part = this.#parts[0]; part; part = this.#parts[0]) {
      await this.#read(part);
      if (this.#parts.length === 1 || text.isFull) return;
      text.endOfFile();
      this.#endsInLine = false;
      this.#parts.shift();
      await this.#trail(part);
    }
  }

  async #trail(part: Part | undefined): Promise<void> {
    const former = this.#trailing;
    this.#trailing = part && { ...part, since: this.#options.clock.now() };
    await former?.file.close();
  }

  async #read(part: Part): Promise<void> {
    const { file } = part;
    if (file.isCompressed) {
      for await (const block of file.blocks(part.position)) {
        if (!(await this.#take(part, block))) return;
      }
      return;
    }
    const unread = async () => Math.min(blockBytes, (await file.size()) - part.position);
    for (let size = await unread(); size > 0; size = await unread()) {
      // As large as what there is: a line that was just written must not cost a whole block.
      const buffer = Buffer.allocUnsafeSlow(size);
      for (;;) {
        const block = await file.read(buffer, part.position);
        if (block.length === 0) break;
        if (!(await this.#take(part, block))) return;
      }
    }
  }

  /** False when no more is wanted. */
  async #take(part: Part, block: Buffer): Promise<boolean> {
    const { text, write } = this.#options;
    part.position += block.length;
    this.#endsInLine = block.at(-1) !== 0x0a;
    text.push(block);
    await write();
    return !text.isFull;
  }

  async #close(): Promise<void> {
    const files = [...this.#parts, ...(this.#trailing ? [this.#trailing] : [])];
    this.#parts.length = 0;
    this.#trailing = undefined;
    await Promise.all(files.map(({ file }) => file.close()));
  }
}

/**
 * Opens the rotated parts that are newer than `current`, oldest first. When `current` is not among them it
 * was removed, and with it all older ones: the rest is newer.
 */
async function partsSince(current: LogFile, rotated: readonly string[]): Promise<LogFile[]> {
  const newer: LogFile[] = [];
  try {
    for (const path of rotated.toReversed()) {
      const file = await openRotated(path);
      if (!file) continue;
      newer.unshift(file);
      if (!(await file.isSameAs(current))) continue;
      newer.shift();
      await file.close();
      break;
    }
    return newer;
  } catch (error) {
    await Promise.all(newer.map((file) => file.close()));
    throw error;
  }
}
