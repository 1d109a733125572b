/**
 * The client's own rate limit (`kubeAPIQPS`, `kubeAPIBurst`): a bucket of `burst` permits that fills at
 * `qps`. While it is empty, status reports are let through before everything else; heartbeats do not pass
 * here at all. Equal priorities keep their order of arrival.
 */
import type { Clock } from '../concurrency/clock.ts';

export interface RequestGateOptions {
  /** Requests per second; 0 means 5, and less than 0 no limit, as in every Kubernetes client. */
  readonly qps: number;
  /** 0 means 10. */
  readonly burst: number;
  readonly clock: Clock;
}

interface Waiting {
  readonly pass: () => void;
}

export class RequestGate {
  readonly #qps: number;
  readonly #burst: number;
  readonly #clock: Clock;
  #permits: number;
  #filledAt: number;
  readonly #waiting: Record<'status' | 'normal', Waiting[]> = { status: [], normal: [] };
  #cancelTimer: (() => void) | undefined;

  constructor({ qps, burst, clock }: RequestGateOptions) {
    this.#qps = qps === 0 ? 5 : qps;
    this.#burst = burst <= 0 ? 10 : burst;
    this.#clock = clock;
    this.#permits = this.#burst;
    this.#filledAt = clock.now();
  }

  /** How many requests wait for a permit. */
  get waiting(): number {
    return this.#waiting.status.length + this.#waiting.normal.length;
  }

  /** Resolves when the request may go; rejects with the signal's reason. */
  async pass(priority: 'status' | 'normal', signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#qps < 0) return;
    this.#fill();
    if (this.waiting === 0 && this.#permits >= 1) {
      this.#permits--;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const queue = this.#waiting[priority];
      const onAbort = () => {
        queue.splice(queue.indexOf(entry), 1);
        reject(signal.reason);
      };
      const entry: Waiting = {
        pass: () => {
          signal.removeEventListener('abort', onAbort);
          resolve();
        },
      };
      signal.addEventListener('abort', onAbort, { once: true });
      queue.push(entry);
      this.#arm();
    });
  }

  #fill(): void {
    const now = this.#clock.now();
    // A clock that was set back gives nothing and takes nothing.
    const passed = Math.max(0, now - this.#filledAt);
    this.#permits = Math.min(this.#burst, this.#permits + (passed / 1000) * this.#qps);
    this.#filledAt = now;
  }

  #arm(): void {
    if (this.#cancelTimer || this.waiting === 0) return;
    const missing = Math.max(0, 1 - this.#permits);
    this.#cancelTimer = this.#clock.after(Math.ceil((missing / this.#qps) * 1000), () => {
      this.#cancelTimer = undefined;
      this.#fill();
      while (this.#permits >= 1) {
        const next = this.#waiting.status.shift() ?? this.#waiting.normal.shift();
        if (!next) break;
        this.#permits--;
        next.pass();
      }
      this.#arm();
    });
  }
}
