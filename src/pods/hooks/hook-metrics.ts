/** Counts what is out of the ordinary about lifecycle hooks. */
import type { Counter, Metrics } from '../../telemetry/metrics.ts';

export class HookMetrics {
  readonly #fallbacks: Counter;
  readonly #cutShort: Counter;

  constructor(metrics: Metrics) {
    this.#fallbacks = metrics.counter({
      name: 'kubelet_lifecycle_handler_http_fallbacks_total',
      help: '[ALPHA] HTTPS hooks that were answered in plain HTTP.',
    });
    this.#cutShort = metrics.counter({
      name: 'kubelet_sleep_action_terminated_early_total',
      help: '[ALPHA] Hooks that were to sleep and could not to the end.',
    });
  }

  /** An HTTPS hook was answered in plain HTTP. */
  httpFallback(): void {
    this.#fallbacks.inc();
  }

  /** A hook that sleeps was given up. */
  sleepCutShort(): void {
    this.#cutShort.inc();
  }
}
