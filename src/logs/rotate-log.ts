/**
 * Rotates one log: `<n>.log` becomes `<n>.log.<time>`, the runtime makes a new file, older parts are
 * compressed and surplus ones removed. The newest rotated part stays as it was written, since log collectors
 * and the runtime may still be at it.
 *
 * Can be cut off at any step: every step leaves files a reader understands, and the next rotation clears up
 * first. No line is lost except with a part that is removed as surplus.
 */
import { constants } from 'node:fs';
import { type FileHandle, link, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { blockBytes } from './log-file.ts';
import { rotatedName, rotatedNames, splitLogPath, unfinishedNames } from './log-file-name.ts';

export interface RotateLogOptions {
  /** Path of the live log. */
  readonly path: string;
  /** Files in all, the live one included; at least 2. */
  readonly maxFiles: number;
  /** The time for the name of the rotated part, epoch milliseconds. */
  readonly now: number;
  /** Has the runtime open the live log anew (`ReopenContainerLog`). */
  readonly reopen: () => Promise<void>;
  /** Told what could not be compressed; the log is rotated all the same. */
  readonly onTrouble: (what: string, error: unknown) => void;
  /** Called before each change on disk, with its kind. */
  readonly onStep?: (step: RotationStep) => void | Promise<void>;
}

export type RotationStep =
  | 'remove-unfinished'
  | 'remove-duplicate'
  | 'remove-surplus'
  | 'write-compressed'
  | 'name-compressed'
  | 'remove-original'
  | 'rename'
  | 'reopen'
  | 'rename-back';

/** The log could not be rotated; it is as it was, or will be on the next try. */
export class LogRotationError extends Error {
  override name = 'LogRotationError';
}

export async function rotateLog(options: RotateLogOptions): Promise<void> {
  const { path, maxFiles, now, reopen, onStep } = options;
  const { directory, live } = splitLogPath(path);
  await clearUp(directory, live, options);
  const parts = rotatedNames(await readdir(directory), live);
  // The live log is about to become one more part, beside a new live one.
  const surplus = parts.splice(0, Math.max(0, parts.length - (maxFiles - 2)));
  for (const { name, isCompressed } of surplus) {
    await onStep?.('remove-surplus');
    await rm(join(directory, isCompressed ? `${name}.gz` : name), { force: true });
  }
  for (const { name, isPlain } of parts) {
    if (!isPlain) continue;
    await compress(join(directory, name), options).catch((error: unknown) => options.onTrouble(name, error));
  }
  const rotated = join(directory, rotatedName(live, now, (parts.at(-1) ?? surplus.at(-1))?.name));
  await onStep?.('rename');
  await rename(path, rotated);
  try {
    await onStep?.('reopen');
    await reopen();
  } catch (error) {
    await onStep?.('rename-back');
    await moveBack(rotated, path);
    throw new LogRotationError(`the runtime could not open ${path} anew: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** What a rotation that was cut off has left: unfinished files, and originals whose compression was finished. */
async function clearUp(directory: string, live: string, { onStep }: RotateLogOptions): Promise<void> {
  const names = await readdir(directory);
  for (const name of unfinishedNames(names, live)) {
    await onStep?.('remove-unfinished');
    await rm(join(directory, name), { force: true });
  }
  for (const { name, isPlain, isCompressed } of rotatedNames(names, live)) {
    if (!isPlain || !isCompressed) continue;
    await onStep?.('remove-duplicate');
    await rm(join(directory, name), { force: true });
  }
}

async function compress(path: string, { onStep }: RotateLogOptions): Promise<void> {
  const { createGzip } = process.getBuiltinModule('node:zlib');
  const { pipeline } = process.getBuiltinModule('node:stream/promises');
  const temporary = `${path}.tmp`;
  await onStep?.('write-compressed');
  const { O_WRONLY, O_CREAT, O_EXCL, O_RDONLY, O_NOFOLLOW } = constants;
  const source = await open(path, O_RDONLY | O_NOFOLLOW);
  try {
    const { mode } = await source.stat();
    const target = await open(temporary, O_WRONLY | O_CREAT | O_EXCL, mode & 0o777);
    try {
      await pipeline(blocksOf(source), createGzip(), async (blocks: AsyncIterable<Buffer>) => {
        for await (const block of blocks) await target.writeFile(block);
      });
      await target.sync();
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
  await onStep?.('name-compressed');
  await rename(temporary, `${path}.gz`);
  await onStep?.('remove-original');
  await rm(path, { force: true });
}

async function* blocksOf(file: FileHandle): AsyncGenerator<Buffer> {
  for (;;) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafeSlow(blockBytes), 0, blockBytes);
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
  }
}

/** Gives the log its name back, unless the runtime has made a new one after all. */
async function moveBack(rotated: string, path: string): Promise<void> {
  try {
    await link(rotated, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return;
    throw error;
  }
  await rm(rotated, { force: true });
}
