/**
 * Follows the agent's JSON log. The agent stamps each line when it writes it, so what is read here late is
 * still measured exactly, and following costs the agent nothing.
 */
import { closeSync, openSync, readSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

export interface LogLine {
  /** Epoch milliseconds. */
  readonly ts: number;
  readonly msg: string;
  readonly [field: string]: unknown;
}

const pollMs = 20;

export class AgentLog {
  readonly #file: number;
  #rest = '';

  /** Reads from the beginning of `path`, which must exist. */
  constructor(path: string) {
    this.#file = openSync(path, 'r');
  }

  /** The lines that have come since the last call. */
  read(): LogLine[] {
    const chunk = Buffer.alloc(64 * 1024);
    for (let size = 1; size > 0; ) {
      size = readSync(this.#file, chunk, 0, chunk.length, null);
      this.#rest += chunk.toString('latin1', 0, size);
    }
    const lines = this.#rest.split('\n');
    this.#rest = lines.pop() ?? '';
    return lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as LogLine);
  }

  /**
   * Waits until `count` pods have each had a line that matches; resolves to the time of each pod's first
   * such line, by `namespace/name`.
   */
  async times(
    matches: (line: LogLine) => boolean,
    { count, limitMs, stop }: { count: number; limitMs: number; stop: AbortSignal },
  ): Promise<Map<string, number>> {
    const times = new Map<string, number>();
    const deadline = Date.now() + limitMs;
    for (;;) {
      for (const line of this.read()) {
        const pod = String(line.pod);
        if (matches(line) && !times.has(pod)) times.set(pod, line.ts);
      }
      if (times.size >= count) return times;
      if (Date.now() > deadline)
        throw new Error(`only ${times.size} of ${count} pods got there in ${limitMs / 1000} s`);
      await pause(pollMs, undefined, { signal: stop });
    }
  }

  close(): void {
    closeSync(this.#file);
  }
}

export function isStarted({ msg, action, ok }: LogLine): boolean {
  return msg === 'Acted for pod' && action === 'start-container' && ok === true;
}

export function isGone({ msg }: LogLine): boolean {
  return msg === 'Nothing is left of a pod';
}
