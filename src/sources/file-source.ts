/**
 * Static pods from `staticPodPath`: a directory of manifests, or one file. Changes are seen at once by
 * inotify, and whatever inotify missed by a look at everything each `fileCheckFrequency`.
 *
 * Differs from the kubelet in what it does with trouble: there a manifest that becomes unreadable stops its
 * pod, here the last good version runs on (see `manifest-files.ts`).
 */
import { basename, dirname } from 'node:path';
import type { Clock } from '../concurrency/clock.ts';
import type { Logger } from '../telemetry/logger.ts';
import { DirectoryWatch } from './directory-watch.ts';
import type { LastGood } from './last-good-manifests.ts';
import { ManifestFiles } from './manifest-files.ts';
import type { DecodeManifest, PodSource, SourceUpdate } from './pod-source.ts';

export interface FileSourceOptions {
  /** `staticPodPath`, absolute. */
  path: string;
  /** `fileCheckFrequency`, milliseconds. */
  checkFrequency: number;
  decode: DecodeManifest;
  clock: Clock;
  log: Logger;
  lastGood: LastGood;
}

export class FileSource implements PodSource {
  readonly name = 'file';
  readonly #options: FileSourceOptions;
  readonly #files: ManifestFiles;
  readonly #log: Logger;

  constructor(options: FileSourceOptions) {
    this.#options = options;
    this.#files = new ManifestFiles(options);
    this.#log = options.log.with({ logger: 'sources' });
  }

  async run(listener: (update: SourceUpdate) => void, signal: AbortSignal): Promise<void> {
    const { path, checkFrequency, clock } = this.#options;
    const wake = new Wake();
    const onAbort = () => wake.all();
    signal.addEventListener('abort', onAbort, { once: true });
    let watch: DirectoryWatch | undefined;
    let watched: string | undefined;
    try {
      wake.all();
      while (!signal.aborted) {
        const names = await wake.next();
        if (signal.aborted) return;
        const seen = names === 'all' ? await this.#files.scan() : await this.#files.look(names);
        if (seen.changed) {
          const { pods, errors, complete } = seen;
          listener({ source: 'file', pods, errors, complete });
        }
        const target = this.#files.kind === 'directory' ? path : dirname(path);
        if (target !== watched) {
          watch?.close();
          watched = target;
          watch = this.#watch(target, wake);
        } else if (names === 'all') await watch?.verify();
        if (names === 'all') wake.allAfter(clock, checkFrequency);
        wake.recheckAt(clock, seen.recheckAt);
      }
    } finally {
      signal.removeEventListener('abort', onAbort);
      watch?.close();
      wake.close();
    }
  }

  #watch(target: string, wake: Wake): DirectoryWatch {
    const { path, clock } = this.#options;
    const watch = new DirectoryWatch({
      path: target,
      clock,
      log: this.#log,
      onChange(name) {
        if (name === undefined) wake.all();
        else if (target === path) wake.some(name);
        else if (name === basename(path)) wake.all();
      },
    });
    watch.start();
    return watch;
  }
}

/** What to look at next: gathers hints while a look is under way, so that a burst costs two looks. */
class Wake {
  #pending: Set<string> | 'all' | undefined;
  #resolve: (() => void) | undefined;
  #cancelAll: (() => void) | undefined;
  #cancelRecheck: (() => void) | undefined;

  all(): void {
    this.#pending = 'all';
    this.#resolve?.();
  }

  some(...names: string[]): void {
    this.#pending ??= new Set();
    if (this.#pending !== 'all') for (const name of names) this.#pending.add(name);
    this.#resolve?.();
  }

  allAfter(clock: Clock, ms: number): void {
    this.#cancelAll?.();
    this.#cancelAll = clock.after(ms, () => this.all());
  }

  /** Asks for a look at nothing in particular (what has not settled) at this time. */
  recheckAt(clock: Clock, at: number | undefined): void {
    this.#cancelRecheck?.();
    this.#cancelRecheck = undefined;
    if (at !== undefined) this.#cancelRecheck = clock.after(at - clock.now(), () => this.some());
  }

  async next(): Promise<Set<string> | 'all'> {
    while (this.#pending === undefined) {
      await new Promise<void>((resolve) => {
        this.#resolve = resolve;
      });
    }
    const pending = this.#pending;
    this.#pending = undefined;
    return pending;
  }

  close(): void {
    this.#cancelAll?.();
    this.#cancelRecheck?.();
  }
}
