/**
 * Tells at once (inotify) when something in a directory changes, whatever happens to the directory itself:
 * a watch that broke, or whose directory vanished, is set up again with a back-off of 1 to 20 seconds.
 *
 * It is only the fast path. What it reports is a hint to look, and its owner scans now and then anyway.
 */
import { type FSWatcher, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Clock } from '../concurrency/clock.ts';
import type { Logger } from '../telemetry/logger.ts';

const firstRetry = 1000;
const longestRetry = 20_000;

export interface DirectoryWatchOptions {
  path: string;
  clock: Clock;
  log: Logger;
  /** Called with the name that changed, or without one when anything may have: also after each (re)start. */
  onChange: (name?: string) => void;
}

export class DirectoryWatch {
  readonly #options: DirectoryWatchOptions;
  #watcher: FSWatcher | undefined;
  /** Which directory the watch is on: a new one of the same name needs a new watch. */
  #identity: string | undefined;
  #retryAfter = firstRetry;
  #cancelRetry: (() => void) | undefined;
  #closed = false;
  /** Counts starts, so that an overtaken one gives up. */
  #generation = 0;

  constructor(options: DirectoryWatchOptions) {
    this.#options = options;
  }

  start(): void {
    void this.#start();
  }

  /** Sets the watch up again if the path has come to mean another directory. Cheap: one `stat`. */
  async verify(): Promise<void> {
    if (this.#closed || this.#watcher === undefined) return;
    if ((await identityOf(this.#options.path)) !== this.#identity) this.#broken();
  }

  close(): void {
    this.#closed = true;
    this.#stop();
  }

  async #start(): Promise<void> {
    const generation = ++this.#generation;
    const { path, log, onChange } = this.#options;
    const identity = await identityOf(path);
    if (this.#closed || generation !== this.#generation) return;
    if (identity === undefined) return this.#retry(undefined);
    try {
      const watcher = watch(path, { persistent: false });
      watcher.on('error', () => this.#broken());
      watcher.on('change', (_type, name) => this.#changed(name === null ? undefined : name.toString()));
      this.#watcher = watcher;
      this.#identity = identity;
      this.#retryAfter = firstRetry;
    } catch (error) {
      return this.#retry(error);
    }
    log.v(2, 'Watching manifests', { path });
    // What changed before the watch stood has made no event.
    onChange();
  }

  #changed(name: string | undefined): void {
    if (this.#closed) return;
    // Events of the directory itself (removed, moved, unmounted) carry its own name.
    if (name === basename(this.#options.path)) this.#broken();
    else this.#options.onChange(name);
  }

  #broken(): void {
    if (this.#closed) return;
    this.#stop();
    this.#options.onChange();
    void this.#start();
  }

  #retry(error: unknown): void {
    const { path, log, clock } = this.#options;
    const message = 'Cannot watch manifests; they are looked at by the periodic scan only';
    if (error !== undefined && this.#retryAfter === firstRetry) log.error(message, error, { path });
    this.#cancelRetry = clock.after(this.#retryAfter, () => void this.#start());
    this.#retryAfter = Math.min(this.#retryAfter * 2, longestRetry);
  }

  #stop(): void {
    this.#generation++;
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
    this.#watcher?.close();
    this.#watcher = undefined;
  }
}

/** Survives a chmod, differs for a directory that was removed and made again. */
async function identityOf(path: string): Promise<string | undefined> {
  try {
    const stats = await stat(path, { bigint: true });
    return stats.isDirectory() ? `${stats.dev}:${stats.ino}:${stats.birthtimeNs}` : undefined;
  } catch {
    return undefined;
  }
}
