/**
 * Keeps the logs of running containers small: looks at their sizes once every `containerLogMonitorInterval`
 * and rotates those that have grown too large, a few at a time. A log that is gone is made anew by the
 * runtime, as after a rotation that was cut off.
 */
import { lstat, stat } from 'node:fs/promises';
import { type Clock, sleep } from '../concurrency/clock.ts';
import { Limiter } from '../concurrency/limiter.ts';
import type { Logger } from '../telemetry/logger.ts';
import { rotateLog } from './rotate-log.ts';

export interface RotationSettings {
  /** `containerLogMaxSize` in bytes; negative: never rotate. */
  readonly maxBytes: number;
  /** `containerLogMaxFiles` */
  readonly maxFiles: number;
  /** `containerLogMaxWorkers` */
  readonly workers: number;
  /** `containerLogMonitorInterval` */
  readonly everyMs: number;
}

export interface RunningContainerLog {
  readonly containerId: string;
  readonly path: string;
}

export interface LogRotationOptions {
  readonly settings: RotationSettings;
  readonly running: () => Iterable<RunningContainerLog>;
  /** `ReopenContainerLog` */
  readonly reopen: (containerId: string, signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class LogRotation {
  readonly #options: LogRotationOptions;
  readonly #workers: Limiter;
  /** Containers whose log waits for a worker or is with one. */
  readonly #busy = new Map<string, Promise<void>>();

  constructor(options: LogRotationOptions) {
    this.#options = options;
    this.#workers = new Limiter(options.settings.workers);
  }

  /** Looks until `signal` aborts; a rotation under way is finished. */
  async run(signal: AbortSignal): Promise<void> {
    const { settings, clock } = this.#options;
    if (settings.maxBytes < 0) return;
    while (!signal.aborted) {
      await sleep(clock, settings.everyMs, signal).catch(() => {});
      if (!signal.aborted) await this.look(signal);
    }
    await Promise.all(this.#busy.values());
  }

  /** Finds what has to be rotated and hands it to the workers. */
  async look(signal: AbortSignal): Promise<void> {
    for (const log of this.#options.running()) {
      const { containerId } = log;
      if (this.#busy.has(containerId) || !(await this.#isDue(log))) continue;
      const work = this.#workers
        .run(() => this.#rotate(log, signal), { signal })
        .catch((error: unknown) => {
          if (!signal.aborted) this.#options.logger.error('Rotating a log failed', error, { ...log });
        })
        .finally(() => this.#busy.delete(containerId));
      this.#busy.set(containerId, work);
    }
  }

  /** Resolves when no log is with a worker. */
  async idle(): Promise<void> {
    await Promise.all(this.#busy.values());
  }

  async #isDue(log: RunningContainerLog): Promise<boolean> {
    const size = await sizeOf(log.path);
    if (size !== undefined && size < this.#options.settings.maxBytes) return false;
    // Behind a link is a log that the runtime keeps elsewhere and rotates itself, as Docker does.
    return !(await isLink(log.path));
  }

  async #rotate(log: RunningContainerLog, signal: AbortSignal): Promise<void> {
    const { settings, clock, logger, reopen } = this.#options;
    const { containerId, path } = log;
    const size = await sizeOf(path);
    if (size === undefined) return await reopen(containerId, signal);
    // It may have waited for long.
    if (size < settings.maxBytes) return;
    logger.v(2, 'Rotating a log', { ...log, size });
    await rotateLog({
      path,
      maxFiles: settings.maxFiles,
      now: clock.now(),
      reopen: () => reopen(containerId, signal),
      onTrouble: (part, error) => logger.error('Compressing a rotated log failed', error, { path, part }),
    });
  }
}

async function isLink(path: string): Promise<boolean> {
  return await lstat(path).then(
    (facts) => facts.isSymbolicLink(),
    () => false,
  );
}

/** Undefined when there is no such file. */
async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw error;
  }
}
