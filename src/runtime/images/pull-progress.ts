/**
 * How far pulls are, for as long as they run: told to whoever waits and, at verbosity 2, to the log. Looks
 * once a second at most, and not at all while nothing is pulled.
 */
import { type Clock, sleep } from '../../concurrency/clock.ts';
import { formatDuration } from '../../kubernetes/duration.ts';
import type { Logger } from '../../telemetry/logger.ts';

/** How far a pull is. */
export interface PullProgress {
  readonly elapsedMs: number;
  /** What the runtime tells, if it does. `totalBytes` is absent until it is known. */
  readonly bytes?: DownloadedBytes | undefined;
}

/** Bytes over all layers. */
export interface DownloadedBytes {
  readonly doneBytes: number;
  readonly totalBytes?: number | undefined;
}

/** A runtime that tells how much of an image has come. */
export interface DownloadSource {
  /** Follows one image (by its name with tag or digest); one call to `look` for each look. */
  follow(image: string): { look(signal: AbortSignal): Promise<DownloadedBytes | undefined> };
}

/** Told about once a second while a pull is under way. */
export type ProgressListener = (progress: PullProgress) => void;

const lookEveryMs = 1000;
const logEveryMs = 10_000;

/** The waiting message of a container: `Pulling image "x": 12 of 40 MiB`. */
export function progressMessage(image: string, { elapsedMs, bytes }: PullProgress): string {
  const pulling = `Pulling image ${JSON.stringify(image)}`;
  if (bytes === undefined) return `${pulling} for ${formatDuration(Math.trunc(elapsedMs / 1000) * 1000)}`;
  const { doneBytes, totalBytes } = bytes;
  const [name, unit] = unitFor(totalBytes ?? doneBytes);
  const done = amount(doneBytes, unit);
  return `${pulling}: ${totalBytes === undefined ? done : `${done} of ${amount(totalBytes, unit)}`} ${name}`;
}

const units = [
  ['GiB', 2 ** 30],
  ['MiB', 2 ** 20],
  ['KiB', 2 ** 10],
] as const;

function unitFor(bytes: number): readonly [name: string, bytes: number] {
  return units.find(([, unit]) => bytes >= unit) ?? ['bytes', 1];
}

/** One decimal below ten, where it says something. */
function amount(bytes: number, unit: number): string {
  const value = bytes / unit;
  return unit > 1 && value > 0 && value < 10
    ? (Math.trunc(value * 10) / 10).toFixed(1)
    : String(Math.trunc(value));
}

/** Follows pulls, tells listeners, and logs those that take long. */
export class PullProgressReports {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #source: DownloadSource | undefined;
  readonly #listeners = new Map<string, Set<ProgressListener>>();

  constructor(options: { clock: Clock; logger: Logger; source?: DownloadSource | undefined }) {
    this.#clock = options.clock;
    this.#logger = options.logger;
    this.#source = options.source;
  }

  /** Lets `listener` hear of the pull `key`, now or when it begins; the returned function ends that. */
  listen(key: string, listener: ProgressListener): () => void {
    const listeners = this.#listeners.get(key) ?? new Set();
    this.#listeners.set(key, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(key);
    };
  }

  /** Reports on the pull `key` of `image` while `pull` runs. */
  async during<T>(key: string, image: string, pull: () => Promise<T>): Promise<T> {
    const ended = new AbortController();
    const reporting = this.#report(key, image, ended.signal);
    try {
      return await pull();
    } finally {
      ended.abort();
      await reporting;
    }
  }

  async #report(key: string, image: string, ended: AbortSignal): Promise<void> {
    const began = this.#clock.now();
    const download = this.#source?.follow(image);
    let nextLog = began + logEveryMs;
    while (!ended.aborted) {
      await sleep(this.#clock, lookEveryMs, ended).catch(() => {});
      if (ended.aborted) return;
      // Not to be told is no reason to disturb the pull.
      const bytes = await download?.look(ended).catch(() => undefined);
      if (ended.aborted) return;
      const elapsedMs = this.#clock.now() - began;
      for (const listener of this.#listeners.get(key) ?? []) listener({ elapsedMs, bytes });
      if (this.#clock.now() < nextLog) continue;
      nextLog = this.#clock.now() + logEveryMs;
      const elapsed = formatDuration(Math.trunc(elapsedMs / 1000) * 1000);
      this.#logger.v(2, 'An image is being pulled', { image, elapsed, ...bytes });
    }
  }
}
