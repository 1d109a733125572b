/**
 * Reads the log of a container as text: the instance asked for, from where it is asked for, over all rotated
 * parts; when following, on through rotations and through restarts of the container until no further
 * instance will come. Every line comes once, in the order it was written.
 *
 * Waiting is for events of the directory and of the container; nothing is polled. At rest a follower holds
 * one or two open files and no buffer.
 */
import { type FSWatcher, watch } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../concurrency/clock.ts';
import { WakeUp } from '../concurrency/wake-up.ts';
import { type LogStart, namesIn } from './instance-files.ts';
import { InstanceReader } from './instance-reader.ts';
import { attemptOfLive, splitLogPath } from './log-file-name.ts';
import { LogText, type LogTextOptions } from './log-text.ts';

/** What following asks about the container. */
export interface ContainerProgress {
  /** The attempt of the newest instance. */
  readonly attempt: number;
  /** A process of it may be running. */
  readonly isRunning: boolean;
  /** Another instance will come after it. */
  readonly continues: boolean;
}

export interface FollowedContainer {
  /** Undefined when nothing is known of the container any more. */
  progress(): ContainerProgress | undefined;
  /** Calls `listener` whenever {@link progress} may have changed, until the answer is called. */
  subscribe(listener: () => void): () => void;
}

/** Where the text goes. */
export interface LogSink {
  /** Resolves when more may be written; rejects when nobody reads any more. */
  write(text: Buffer, signal: AbortSignal): Promise<void>;
}

export interface ReadLogOptions extends LogStart, LogTextOptions {
  /** Path of the instance's live log. */
  readonly path: string;
  readonly attempt: number;
  /** Given, the log is followed. */
  readonly follow?: FollowedContainer;
  readonly clock: Clock;
}

/** There is no log file, neither a live one nor a rotated one. */
export class NoLogError extends Error {
  override name = 'NoLogError';

  constructor(path: string, options?: ErrorOptions) {
    super(`failed to open log file ${JSON.stringify(path)}: no such file or directory`, options);
  }
}

/**
 * Resolves when all is written; rejects with {@link NoLogError} before anything is, and when the sink or a
 * file fails.
 */
export async function readContainerLog(
  options: ReadLogOptions,
  sink: LogSink,
  signal: AbortSignal,
): Promise<void> {
  const { path, clock, follow } = options;
  const text = new LogText(options);
  const write = async (): Promise<void> => {
    signal.throwIfAborted();
    const piece = text.take();
    if (piece) await sink.write(piece, signal);
  };
  if (follow) return await followContainer({ ...options, follow }, { text, write }, signal);
  const isThere = await new InstanceReader({ path, start: options, text, write, clock }).readAll();
  if (!isThere) throw new NoLogError(path);
  text.endOfContainer();
  await write();
}

async function followContainer(
  options: ReadLogOptions & { follow: FollowedContainer },
  { text, write }: { text: LogText; write: () => Promise<void> },
  signal: AbortSignal,
): Promise<void> {
  const { follow, clock } = options;
  const { directory } = splitLogPath(options.path);
  const bell = new WakeUp();
  const broken = new AbortController();
  const ended = AbortSignal.any([signal, broken.signal]);
  const wait = () => bell.wait(ended);
  const watcher = watchDirectory(directory, options.path);
  watcher.on('change', () => bell.wake());
  watcher.on('error', (error) => broken.abort(error));
  const unsubscribe = follow.subscribe(() => bell.wake());
  try {
    let start: LogStart = options;
    for (let attempt: number | undefined = options.attempt; attempt !== undefined; ) {
      const path = attempt === options.attempt ? options.path : join(directory, `${attempt}.log`);
      const isOver = () => isInstanceOver(follow.progress(), attempt!);
      await new InstanceReader({ path, start, text, write, clock }).follow(isOver, wait);
      text.endOfContainer();
      await write();
      if (text.isFull) return;
      attempt = await nextAttempt(directory, attempt, follow, wait);
      start = {};
    }
  } finally {
    unsubscribe();
    watcher.close();
  }
}

function watchDirectory(directory: string, path: string): FSWatcher {
  try {
    return watch(directory, { persistent: false });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new NoLogError(path, { cause: error });
    if (code !== 'ENOSPC' && code !== 'EMFILE') throw error;
    throw new Error(
      `cannot watch ${directory} for log lines: ${code}; raise fs.inotify.max_user_watches and max_user_instances`,
      { cause: error },
    );
  }
}

function isInstanceOver(now: ContainerProgress | undefined, attempt: number): boolean {
  return !now || now.attempt > attempt || !now.isRunning;
}

/** The instance that follows `attempt`, waited for as long as one may come. */
async function nextAttempt(
  directory: string,
  attempt: number,
  follow: FollowedContainer,
  wait: () => Promise<void>,
): Promise<number | undefined> {
  for (;;) {
    const now = follow.progress();
    // Several may have come and gone while the client was slow; those whose logs are still there are read.
    const later = (await namesIn(directory))
      .map(attemptOfLive)
      .filter((one) => one !== undefined && one > attempt);
    if (later.length > 0) return Math.min(...(later as number[]));
    if (!now || (!now.isRunning && !now.continues)) return undefined;
    await wait();
  }
}
