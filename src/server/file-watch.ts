/**
 * Tells when the content of files changes, so that certificates are renewed without a restart. The directories
 * are watched (inotify), which also sees files that are replaced by renaming, or by a symbolic link that is led
 * elsewhere as in mounted secrets. Once a minute the files are looked at anyway, for what is no event.
 */
import { createHash } from 'node:crypto';
import { type FSWatcher, watch } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock } from '../concurrency/clock.ts';
import { LatestOnly } from '../concurrency/latest-only.ts';

const lookEvery = 60_000;
/** Several files are replaced one after the other. */
const settleMs = 100;

export interface FileWatchOptions {
  /** Absolute. */
  readonly paths: readonly string[];
  readonly clock: Clock;
  /** What changed is in place; a rejection is told to `onError`, and the next change tried again. */
  readonly onChange: () => Promise<void>;
  readonly onError: (error: unknown) => void;
}

export class FileWatch {
  readonly #options: FileWatchOptions;
  readonly #look: LatestOnly;
  #watchers: FSWatcher[] = [];
  #digest: string | undefined;
  #cancel = () => {};
  #isSoon = false;
  #closed = false;

  constructor(options: FileWatchOptions) {
    this.#options = options;
    this.#look = new LatestOnly(() => this.#compare(), options.onError);
  }

  /** What the files hold now is taken as known; whoever reads them after this misses no change. */
  async start(): Promise<void> {
    const { paths } = this.#options;
    for (const directory of new Set(paths.map((path) => dirname(path)))) {
      try {
        const watcher = watch(directory, { persistent: false }, () => this.#soon());
        watcher.on('error', () => watcher.close());
        this.#watchers.push(watcher);
      } catch {
        // Without inotify, looking once a minute has to do.
      }
    }
    this.#digest = await this.#read();
    this.#later();
  }

  close(): void {
    this.#closed = true;
    this.#cancel();
    for (const watcher of this.#watchers.splice(0)) watcher.close();
  }

  /** Others may write to the directory all the time, which must not put the look off for ever. */
  #soon(): void {
    if (this.#isSoon || this.#closed) return;
    this.#isSoon = true;
    this.#arm(settleMs);
  }

  #later(): void {
    this.#isSoon = false;
    if (!this.#closed) this.#arm(lookEvery);
  }

  #arm(ms: number): void {
    this.#cancel();
    this.#cancel = this.#options.clock.after(ms, () => {
      this.#look.refresh();
      this.#later();
    });
  }

  async #read(): Promise<string> {
    const hash = createHash('sha256');
    for (const path of this.#options.paths) hash.update(await readFile(path).catch(() => 'not there'));
    return hash.digest('hex');
  }

  async #compare(): Promise<void> {
    const digest = await this.#read();
    const before = this.#digest;
    this.#digest = digest;
    if (before !== undefined && before !== digest && !this.#closed) await this.#options.onChange();
  }
}
