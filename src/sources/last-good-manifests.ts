/**
 * Remembers, on disk, the last good text of every manifest, so that a manifest that is broken (or a URL
 * that does not answer) at the moment the agent starts does not take down the pod it described before.
 *
 * Guarantees: one checksummed file per origin; a damaged one is set aside and reported, never fatal.
 * Writing happens behind the caller's back, in order; a failure is logged and costs only the memory across
 * a restart. Files hold whole manifests, so they are readable by root only.
 */
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../concurrency/clock.ts';
import { contentHash } from '../kubernetes/hash.ts';
import { ChecksummedFile } from '../linux/checksummed-file.ts';
import type { Logger } from '../telemetry/logger.ts';

interface Kept {
  readonly origin: string;
  readonly text: string;
}

/** What a source needs of it. */
export interface LastGood {
  /** Text kept for this file or URL. */
  get(origin: string): string | undefined;
  keep(origin: string, text: string): void;
  forget(origin: string): void;
  /** Every origin that has a text. */
  origins(): Iterable<string>;
}

export class LastGoodManifests implements LastGood {
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #texts = new Map<string, string>();
  #queue: Promise<void> = Promise.resolve();
  #failed = false;

  /** `directory` is owned by this object; it is made when first needed. */
  constructor(options: { directory: string; clock: Clock; log: Logger }) {
    this.#directory = options.directory;
    this.#clock = options.clock;
    this.#log = options.log;
  }

  /** Reads what an earlier run kept. Call once, before the sources start. */
  async load(): Promise<void> {
    for (const name of await this.#names()) {
      const read = await this.#file(join(this.#directory, name)).read();
      if (read.kind === 'read') this.#texts.set(read.data.origin, read.data.text);
      else if (read.kind === 'corrupt') {
        const fields = { file: join(this.#directory, name), reason: read.reason, setAside: read.setAside };
        this.#log.warn('The kept copy of a manifest is damaged and not used', fields);
      }
    }
  }

  get(origin: string): string | undefined {
    return this.#texts.get(origin);
  }

  origins(): Iterable<string> {
    return [...this.#texts.keys()];
  }

  keep(origin: string, text: string): void {
    if (this.#texts.get(origin) === text) return;
    this.#texts.set(origin, text);
    this.#enqueue(origin, async (path) => {
      // Overtaken by a later change of the same manifest: that one writes.
      if (this.#texts.get(origin) !== text) return;
      await mkdir(this.#directory, { recursive: true, mode: 0o700 });
      await this.#file(path).write({ origin, text });
    });
  }

  forget(origin: string): void {
    if (!this.#texts.delete(origin)) return;
    this.#enqueue(origin, async (path) => {
      if (!this.#texts.has(origin)) await rm(path, { force: true });
    });
  }

  /** Resolves when everything asked for so far is on disk or has failed. */
  flush(): Promise<void> {
    return this.#queue;
  }

  async #names(): Promise<string[]> {
    try {
      return (await readdir(this.#directory)).filter((name) => name.endsWith('.json'));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') this.#report(error);
      return [];
    }
  }

  #file(path: string): ChecksummedFile<Kept> {
    return new ChecksummedFile<Kept>({ path, clock: this.#clock, accepts: isKept });
  }

  #enqueue(origin: string, task: (path: string) => Promise<void>): void {
    const path = join(this.#directory, `${contentHash(origin)}.json`);
    this.#queue = this.#queue
      .then(() => task(path))
      .then(
        () => {
          this.#failed = false;
        },
        (error: unknown) => this.#report(error),
      );
  }

  #report(error: unknown): void {
    const message = 'Cannot keep copies of good manifests; a broken manifest stops its pod at a restart';
    if (!this.#failed) this.#log.error(message, error, { directory: this.#directory });
    this.#failed = true;
  }
}

function isKept(data: unknown): data is Kept {
  if (typeof data !== 'object' || data === null) return false;
  const { origin, text } = data as Record<string, unknown>;
  return typeof origin === 'string' && typeof text === 'string';
}
