/**
 * The narrow face of the metrics registry: rooms declare what they count, the registry decides how it is
 * kept and written. Names, labels and buckets are Kubernetes' own where Kubernetes has the metric.
 */
export type Labels = Record<string, string>;

/** Only rises. */
export interface Counter {
  inc(labels?: Labels, by?: number): void;
  /** Forgets the series with these labels. */
  remove(labels: Labels): void;
}

/** Goes up and down. */
export interface Gauge {
  set(value: number, labels?: Labels): void;
  /** Forgets the series with these labels. */
  remove(labels: Labels): void;
}

/** Counts values by size. */
export interface Histogram {
  /** `value` in the metric's unit, seconds for durations. */
  observe(value: number, labels?: Labels): void;
  /** Forgets the series with these labels. */
  remove(labels: Labels): void;
}

/** Name, help text and label names of a metric. */
export interface MetricOptions {
  name: string;
  help: string;
  labels?: readonly string[];
}

/** Declares metrics; declaring the same one again gives the same one. */
export interface Metrics {
  counter(options: MetricOptions): Counter;
  gauge(options: MetricOptions): Gauge;
  /** A gauge whose series are asked for at scrape time. */
  observedGauge(options: MetricOptions, read: () => Iterable<{ value: number; labels?: Labels }>): void;
  histogram(options: MetricOptions & { buckets: readonly number[] }): Histogram;
}

/** Counts nothing; for tests and for embedding. */
export const silentMetrics: Metrics = {
  counter: () => ({ inc() {}, remove() {} }),
  gauge: () => ({ set() {}, remove() {} }),
  observedGauge() {},
  histogram: () => ({ observe() {}, remove() {} }),
};
