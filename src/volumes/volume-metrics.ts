/** Measures how long setting up volumes takes, by kind. */
import type { Clock } from '../concurrency/clock.ts';
import type { Histogram, Metrics } from '../telemetry/metrics.ts';

const pluginNames: Readonly<Record<string, string>> = {
  configMap: 'kubernetes.io/configmap',
  downwardAPI: 'kubernetes.io/downward-api',
  emptyDir: 'kubernetes.io/empty-dir',
  hostPath: 'kubernetes.io/host-path',
  persistentVolumeClaim: 'kubernetes.io/csi',
};

/** The plugin that a kubelet has for a source of volumes, as labels of metrics name it. */
export function pluginName(source: string): string {
  return pluginNames[source] ?? `kubernetes.io/${source.toLowerCase()}`;
}

export class VolumeMetrics {
  readonly #clock: Clock;
  readonly #durations: Histogram;

  constructor({ metrics, clock }: { readonly metrics: Metrics; readonly clock: Clock }) {
    this.#clock = clock;
    this.#durations = metrics.histogram({
      name: 'storage_operation_duration_seconds',
      help: '[ALPHA] Time that work on a volume took.',
      labels: ['migrated', 'operation_name', 'status', 'volume_plugin'],
      buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600],
    });
  }

  /** Sets up a volume of this source. */
  async mount<T>(source: string, work: Promise<T>): Promise<T> {
    const began = this.#clock.now();
    let status = 'fail-unknown';
    try {
      const done = await work;
      status = 'success';
      return done;
    } finally {
      const labels = { operation_name: 'volume_mount', migrated: 'false', volume_plugin: pluginName(source) };
      this.#durations.observe((this.#clock.now() - began) / 1000, { ...labels, status });
    }
  }
}
