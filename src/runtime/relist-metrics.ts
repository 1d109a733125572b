/** How often the runtime is looked at whole and how long that takes, as a kubelet tells it of its PLEG. */
import type { Gauge, Histogram, Metrics } from '../telemetry/metrics.ts';

const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Times are epoch milliseconds. */
export class RelistMetrics {
  readonly #duration: Histogram;
  readonly #interval: Histogram;
  readonly #podDuration: Histogram;
  readonly #lastSeen: Gauge;

  constructor(metrics: Metrics) {
    const histogram = (name: string, help: string) =>
      metrics.histogram({ name: `kubelet_pleg_${name}_seconds`, help: `[ALPHA] ${help}`, buckets });
    this.#duration = histogram('relist_duration', 'Time that looking at the whole runtime took.');
    this.#interval = histogram('relist_interval', 'Time between two looks at the whole runtime.');
    this.#podDuration = histogram('pod_relist_duration', 'Time that looking at one pod took.');
    this.#lastSeen = metrics.gauge({
      name: 'kubelet_pleg_last_seen_seconds',
      help: '[ALPHA] When the runtime was last seen whole, in seconds since 1970.',
    });
  }

  relistBegins(began: number, lastEnded: number | undefined): void {
    if (lastEnded !== undefined) this.#interval.observe((began - lastEnded) / 1000);
  }

  relistEnds(began: number, ended: number): void {
    this.#duration.observe((ended - began) / 1000);
    this.#lastSeen.set(ended / 1000);
  }

  podLooked(began: number, ended: number): void {
    this.#podDuration.observe((ended - began) / 1000);
  }
}
