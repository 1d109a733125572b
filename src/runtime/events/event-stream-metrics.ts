/**
 * How the connection that events of the runtime come by is doing. Differs from the kubelet, which counts the
 * stream of CRI alone: here whichever stream there is.
 */
import type { Counter, Histogram, Metrics } from '../../telemetry/metrics.ts';

export class EventStreamMetrics {
  readonly #latency: Histogram;
  readonly #successes: Counter;
  readonly #errors: Counter;

  constructor(metrics: Metrics) {
    const name = (what: string) => `kubelet_evented_pleg_connection_${what}`;
    this.#latency = metrics.histogram({
      name: name('latency_seconds'),
      help: '[ALPHA] Time that connecting to the events of the runtime took.',
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    });
    this.#successes = metrics.counter({
      name: name('success_count'),
      help: '[ALPHA] Times that the events of the runtime began to be heard.',
    });
    this.#errors = metrics.counter({
      name: name('error_count'),
      help: '[ALPHA] Times that the stream of events of the runtime broke, or could not be had.',
    });
  }

  connected(tookMs: number): void {
    this.#latency.observe(tookMs / 1000);
  }

  /** The stream stands. */
  listening(): void {
    this.#successes.inc();
  }

  broke(): void {
    this.#errors.inc();
  }
}
