/**
 * A small JSON state file with a checksum. Reading never fails the program: a file that is truncated,
 * changed or not JSON is set aside as `<name>.corrupt-<time>`, told to the caller, and the state starts
 * empty.
 */
import { createHash } from 'node:crypto';
import { rename } from 'node:fs/promises';
import type { Clock } from '../concurrency/clock.ts';
import { readFileIfExists, writeFileAtomically } from './atomic-file.ts';

export type ChecksummedRead<T> =
  | { readonly kind: 'absent' }
  | { readonly kind: 'read'; readonly data: T }
  /** `setAside` is where the bad file now lies; absent when it could not be moved. */
  | { readonly kind: 'corrupt'; readonly reason: string; readonly setAside?: string };

export class ChecksummedFile<T> {
  readonly path: string;
  readonly #clock: Clock;
  readonly #accepts: (data: unknown) => data is T;

  /** `accepts` checks the shape of what was read: a valid checksum over a foreign shape is corrupt too. */
  constructor(options: { path: string; clock: Clock; accepts: (data: unknown) => data is T }) {
    this.path = options.path;
    this.#clock = options.clock;
    this.#accepts = options.accepts;
  }

  /** Replaces the file atomically, mode 0600. `data` must survive JSON. */
  async write(data: T): Promise<void> {
    const text = JSON.stringify(data);
    await writeFileAtomically(this.path, `{"checksum":"${checksum(text)}","data":${text}}\n`, {
      mode: 0o600,
    });
  }

  async read(): Promise<ChecksummedRead<T>> {
    let text: string | undefined;
    try {
      text = await readFileIfExists(this.path);
    } catch (error) {
      return await this.#setAside(`it cannot be read: ${(error as Error).message}`);
    }
    if (text === undefined) return { kind: 'absent' };
    let document: { checksum?: unknown; data?: unknown };
    try {
      document = JSON.parse(text) as typeof document;
    } catch (error) {
      return await this.#setAside(`it is not JSON: ${(error as Error).message}`);
    }
    if (typeof document !== 'object' || document === null || document.data === undefined) {
      return await this.#setAside('it has no data');
    }
    if (document.checksum !== checksum(JSON.stringify(document.data))) {
      return await this.#setAside('its checksum does not match its data');
    }
    if (!this.#accepts(document.data)) return await this.#setAside('its data has an unknown shape');
    return { kind: 'read', data: document.data };
  }

  async #setAside(reason: string): Promise<ChecksummedRead<T>> {
    const time = new Date(this.#clock.now()).toISOString().replaceAll(/[:.]/g, '-');
    const setAside = `${this.path}.corrupt-${time}`;
    try {
      await rename(this.path, setAside);
      return { kind: 'corrupt', reason, setAside };
    } catch (error) {
      return { kind: 'corrupt', reason: `${reason}; setting it aside failed: ${(error as Error).message}` };
    }
  }
}

function checksum(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}
