/**
 * How long a new node took to join, from the machine's boot on: the `kubelet_node_startup_*` gauges. They
 * get values when the node is Ready for the first time, and only if this agent created it.
 */
import type { Clock } from '../concurrency/clock.ts';
import type { Metrics } from '../telemetry/metrics.ts';

export class StartupTimes {
  readonly #clock: Clock;
  readonly #metrics: Metrics;
  readonly #bootedAt: number;
  readonly #startedAt: number;
  #attemptedAt: number | undefined;
  #registeredAt: number | undefined;
  #isDone = false;

  /** Times are epoch milliseconds: of the machine's boot and of this agent's start. */
  constructor(options: { clock: Clock; metrics: Metrics; bootedAt: number; startedAt: number }) {
    this.#clock = options.clock;
    this.#metrics = options.metrics;
    this.#bootedAt = options.bootedAt;
    this.#startedAt = options.startedAt;
  }

  /** The first try to register begins. */
  attempted(): void {
    this.#attemptedAt ??= this.#clock.now();
  }

  /** This agent has created the node. */
  registered(): void {
    this.#registeredAt ??= this.#clock.now();
  }

  /** The node was reported Ready. */
  ready(): void {
    if (this.#isDone) return;
    this.#isDone = true;
    const [attemptedAt, registeredAt, now] = [this.#attemptedAt, this.#registeredAt, this.#clock.now()];
    if (attemptedAt === undefined || registeredAt === undefined) return;
    const set = (part: string, help: string, from: number, to: number) =>
      this.#metrics
        .gauge({ name: `kubelet_node_startup_${part}duration_seconds`, help })
        .set(Math.max(0, to - from) / 1000);
    set('pre_kubelet_', 'Time from boot to start of the agent', this.#bootedAt, this.#startedAt);
    set('pre_registration_', 'Time from start to the first try to register', this.#startedAt, attemptedAt);
    set('registration_', 'Time from the first try to register to success', attemptedAt, registeredAt);
    set('post_registration_', 'Time from registration to Ready', registeredAt, now);
    set('', 'Time from boot to Ready', this.#bootedAt, now);
  }
}
