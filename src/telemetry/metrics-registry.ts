/**
 * The metrics of one agent, kept by prom-client in a registry of its own (two agents in one process do not
 * mix), written in the Prometheus text format.
 *
 * Guarantees: a metric declared twice with the same kind and labels is the same metric; declared
 * differently, or with a second reader, it is an error at once, not a broken scrape later. A reader of an observed metric that throws
 * leaves out its own series and no other.
 */
import PromCounter from 'prom-client/lib/counter.js';
import PromGauge from 'prom-client/lib/gauge.js';
import PromHistogram from 'prom-client/lib/histogram.js';
import PromRegistry from 'prom-client/lib/registry.js';
import type { Counter, Gauge, Histogram, Labels, MetricOptions, Metrics } from './metrics.ts';

/** Labels of `kubernetes_build_info`. */
export interface BuildInfo {
  /** For example `1.36.2`. */
  readonly version: string;
  readonly gitCommit: string;
  readonly gitTreeState: 'clean' | 'dirty' | '';
  /** RFC 3339. */
  readonly buildDate: string;
}

type Series = Iterable<{ value: number; labels?: Labels }>;

/** What a metric is, without its values. */
export interface MetricDeclaration {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** Sorted. */
  readonly labels: readonly string[];
  /** Of a histogram; empty for others. */
  readonly buckets: readonly number[];
}

interface Declared {
  readonly declaration: MetricDeclaration;
  readonly shape: string;
  /** `ALPHA` of `[ALPHA] Number of …`; without a mark it is `STABLE`. */
  readonly stability: string;
  readonly handle: Counter & Gauge & Histogram & { observed?: unknown };
}

/** Metrics of one endpoint, written in the text format of Prometheus. */
export class MetricsRegistry implements Metrics {
  readonly #registry = new PromRegistry();
  readonly #declared = new Map<string, Declared>();

  /** Every metric in the Prometheus text format. */
  exposition(): Promise<string> {
    return this.#registry.metrics();
  }

  /** Every metric there is, in the order of their declaration. */
  declarations(): MetricDeclaration[] {
    return [...this.#declared.values()].map(({ declaration }) => declaration);
  }

  counter(options: MetricOptions): Counter {
    return this.#declare('counter', options, () => {
      const counter = new PromCounter(this.#config(options));
      return {
        inc: (labels, by = 1) => (labels ? counter.inc(labels, by) : counter.inc(by)),
        remove: (labels) => counter.remove(labels),
      };
    });
  }

  gauge(options: MetricOptions): Gauge {
    return this.#declare('gauge', options, () => {
      const gauge = new PromGauge(this.#config(options));
      return {
        set: (value, labels) => (labels ? gauge.set(labels, value) : gauge.set(value)),
        remove: (labels) => gauge.remove(labels),
      };
    });
  }

  histogram(options: MetricOptions & { buckets: readonly number[] }): Histogram {
    return this.#declare('histogram', options, () => {
      const histogram = new PromHistogram({ ...this.#config(options), buckets: [...options.buckets] });
      return {
        observe: (value, labels) => (labels ? histogram.observe(labels, value) : histogram.observe(value)),
        remove: (labels) => histogram.remove(labels),
      };
    });
  }

  observedGauge(options: MetricOptions, read: () => Series | Promise<Series>): void {
    this.#declare('observed gauge', options, () => {
      const gauge = new PromGauge({
        ...this.#config(options),
        async collect() {
          this.reset();
          for (const { value, labels } of await seriesOf(read)) this.set(labels ?? {}, value);
        },
      });
      return { observed: gauge };
    });
  }

  /** A counter whose totals are kept elsewhere (by the kernel, say) and asked for at scrape time. */
  observedCounter(options: MetricOptions, read: () => Series | Promise<Series>): void {
    this.#declare('observed counter', options, () => {
      const counter = new PromCounter({
        ...this.#config(options),
        async collect() {
          this.reset();
          for (const { value, labels } of await seriesOf(read)) this.inc(labels ?? {}, value);
        },
      });
      return { observed: counter };
    });
  }

  /** Counts the metrics of this registry themselves, by how stable they are. */
  declareCountOfMetrics(): void {
    const name = 'registered_metrics_total';
    const labels = ['stability_level', 'deprecated_version'];
    const help = '[BETA] Metrics that are registered, by stability and the version that deprecates them.';
    this.observedCounter({ name, help, labels }, () => {
      const counts = new Map<string, number>();
      for (const { stability } of this.#declared.values()) {
        counts.set(stability, (counts.get(stability) ?? 0) + 1);
      }
      return [...counts].map(([stability, value]) => ({
        value,
        labels: { stability_level: stability, deprecated_version: '' },
      }));
    });
  }

  #declare(
    kind: `${'' | 'observed '}${MetricDeclaration['type']}`,
    { name, help, labels = [], buckets = [] }: MetricOptions & { readonly buckets?: readonly number[] },
    make: () => Partial<Declared['handle']>,
  ) {
    const sorted = [...labels].sort();
    const which = buckets.length === 0 ? kind : `${kind} of ${buckets.join(' ')}`;
    const shape = `${which} with labels (${sorted.join(', ')})`;
    const before = this.#declared.get(name);
    if (before === undefined) {
      const handle = make() as Declared['handle'];
      const type = kind.replace('observed ', '') as MetricDeclaration['type'];
      const declaration = { name, type, labels: sorted, buckets };
      const stability = /^\[([A-Z]+)\] /.exec(help)?.[1] ?? 'STABLE';
      this.#declared.set(name, { declaration, shape, stability, handle });
      return handle;
    }
    if (before.shape !== shape || before.handle.observed !== undefined) {
      throw new MetricConflict(`metric ${name} is declared as ${shape}, but exists as ${before.shape}`);
    }
    return before.handle;
  }

  #config({ name, help, labels = [] }: MetricOptions) {
    return { name, help, labelNames: [...labels], registers: [this.#registry] };
  }
}

/** Two rooms declare one metric differently: a mistake in the program. */
export class MetricConflict extends Error {
  override name = 'MetricConflict';
}

async function seriesOf(read: () => Series | Promise<Series>): Promise<Series> {
  try {
    return [...(await read())];
  } catch {
    return [];
  }
}

/** Declares `kubernetes_build_info`, whose value is always 1. */
export function declareBuildInfo(metrics: Metrics, build: BuildInfo): void {
  const [major = '', minor = ''] = build.version.split('.');
  const labels: Labels = {
    build_date: build.buildDate,
    // What compiled and runs the agent: the labels are Go's, the values are true for this one.
    compiler: 'v8',
    git_commit: build.gitCommit,
    git_tree_state: build.gitTreeState,
    git_version: `v${build.version}`,
    go_version: `node${process.version}`,
    major,
    minor,
    platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
  };
  const help =
    '[BETA] A metric with a constant 1 value labeled by version, commit and build date of the program.';
  const info = metrics.gauge({ name: 'kubernetes_build_info', help, labels: Object.keys(labels) });
  info.set(1, labels);
  metrics
    .gauge({
      name: 'version_info',
      help: '[ALPHA] Always 1; versions of Kubernetes that the program is, behaves as and gets along with.',
      labels: ['binary', 'component', 'emulation', 'min_compat'],
    })
    .set(1, {
      binary: `${major}.${minor}`,
      component: 'kubelet',
      emulation: `${major}.${minor}`,
      min_compat: `${major}.${Number(minor) - 1}`,
    });
}
