/**
 * What the API server has told pods of this node, kept on disk for a start without it
 * (`--restore-pods-offline`): config maps and secrets they refer to, variables of services, handlers of runtime
 * classes, tokens. One small checksummed file for each, mode 0600, gone when no pod needs it any more.
 *
 * Guarantees: a copy never stands in for an answer, only for a missing one; a damaged copy is none.
 */
import { createHash } from 'node:crypto';
import { mkdir, readdir, rm, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { ApiError } from '../../client/api-client.ts';
import type { Clock } from '../../concurrency/clock.ts';
import type { Pod } from '../../kubernetes/types.ts';
import { ChecksummedFile } from '../../linux/checksummed-file.ts';
import type { ObjectMemory } from '../../objects/referenced-objects.ts';
import { podReferences, referenceKey } from '../../objects/references.ts';
import { NotSyncedError } from '../../objects/synced-objects.ts';
import type { Logger } from '../../telemetry/logger.ts';

/** What a file holds. */
interface Copy {
  readonly key: string;
  readonly value: unknown;
}

/** The copies of a node, in memory and on disk. */
export class OfflineCopies {
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #copies = new Map<string, unknown>();
  /** Works on disk, one after the other. */
  #work: Promise<void> = Promise.resolve();
  #toldTrouble = false;

  constructor(options: { rootDirectory: string; clock: Clock; logger: Logger }) {
    this.#directory = join(options.rootDirectory, 'kubelet-ts', 'offline');
    this.#clock = options.clock;
    this.#logger = options.logger;
  }

  /** Removes what an agent with the setting has left: without it no content of a secret stays on disk. */
  static async discard(rootDirectory: string): Promise<void> {
    await rm(join(rootDirectory, 'kubelet-ts', 'offline'), { recursive: true, force: true });
  }

  /** Reads what is there; what `isNeeded` says no to is removed. */
  async load(isNeeded: (key: string) => boolean): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const names = await readdir(this.#directory);
    for (const name of names) {
      const read = name.endsWith('.json') ? await this.#file(name).read() : undefined;
      if (read?.kind === 'read' && isNeeded(read.data.key)) this.#copies.set(read.data.key, read.data.value);
      else if (read?.kind === 'corrupt') {
        this.#logger.warn('What was kept for a start without the API server is damaged', {
          reason: read.reason,
        });
        // It may hold a secret: nothing of it is set aside.
        if (read.setAside !== undefined) await rm(read.setAside, { force: true });
      } else await rm(join(this.#directory, name), { force: true });
    }
  }

  /** `undefined` when nothing is kept. */
  recall(key: string): unknown {
    return this.#copies.get(key);
  }

  /** Keeps the value (JSON), which the API server has just told. */
  remember(key: string, value: unknown): void {
    if (isDeepStrictEqual(this.#copies.get(key), value)) return;
    this.#copies.set(key, value);
    this.#then(() => this.#file(fileName(key)).write({ key, value }));
  }

  forget(key: string): void {
    if (!this.#copies.delete(key)) return;
    this.#then(() => unlink(join(this.#directory, fileName(key))));
  }

  /** Forgets what belongs to one pod alone. */
  forgetPod(uid: string): void {
    for (const key of this.#copies.keys()) if (key.startsWith(podPrefix(uid))) this.forget(key);
  }

  /** Resolves when everything is on disk. */
  flush(): Promise<void> {
    return this.#work;
  }

  #then(work: () => Promise<void>): void {
    this.#work = this.#work.then(work).catch((error: unknown) => {
      if (this.#toldTrouble) return;
      this.#toldTrouble = true;
      this.#logger.error('What pods need for a start without the API server cannot be kept', error, {
        path: this.#directory,
      });
    });
  }

  #file(name: string): ChecksummedFile<Copy> {
    return new ChecksummedFile({ path: join(this.#directory, name), clock: this.#clock, accepts: isCopy });
  }
}

/** Config maps and secrets by copies. */
export function objectMemory(copies: OfflineCopies): ObjectMemory {
  return {
    remember: (reference, object) => copies.remember(referenceKey(reference), object),
    recall: (reference, error) => (isUnanswered(error) ? copies.recall(referenceKey(reference)) : undefined),
    forget: (reference) => copies.forget(referenceKey(reference)),
  };
}

/** Whether a copy is of use to one of these pods. */
export function neededBy(pods: readonly Pod[]): (key: string) => boolean {
  const references = new Set(pods.flatMap((pod) => podReferences(pod).map(referenceKey)));
  const prefixes = pods.map(({ metadata }) => podPrefix(metadata.uid));
  return (key) => references.has(key) || prefixes.some((prefix) => key.startsWith(prefix));
}

/** Keys of what belongs to one pod begin with this. */
export const podPrefix = (uid: string) => `pod/${uid}/`;

/** Names hold slashes, and may tell more than a directory listing should. */
function fileName(key: string): string {
  return `${createHash('sha256').update(key).digest('hex').slice(0, 32)}.json`;
}

function isCopy(data: unknown): data is Copy {
  const copy = data as Partial<Copy> | null;
  return typeof copy?.key === 'string' && 'value' in copy;
}

/**
 * True when the API server has not answered, however deep in the causes that stands. A refusal is an answer:
 * what a node may no longer read, it must not go on using.
 */
export function isUnanswered(error: unknown): boolean {
  for (let depth = 0, at = error; depth < 5 && at instanceof Error; depth++, at = at.cause) {
    if (at instanceof ApiError) return at.unreachable || at.status >= 500;
    if (at instanceof NotSyncedError) return true;
  }
  return false;
}
