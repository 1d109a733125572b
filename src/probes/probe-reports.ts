/**
 * What operators see of probe runs: events, metrics, log lines; names and texts are the kubelet's.
 *
 * Guarantees: metric series go with the container instance they belong to. A probe that runs many times a
 * second repeats an event at most once a second.
 */
import type { Clock } from '../concurrency/clock.ts';
import type { ContainerPlace } from '../kubernetes/init-containers.ts';
import type { Pod } from '../kubernetes/types.ts';
import { type EventRecorder, podEventObject } from '../telemetry/events.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Counter, Histogram, Labels, Metrics } from '../telemetry/metrics.ts';
import { type ProbeKind, probeTitle } from './probe-kind.ts';
import type { ProbeOutcome } from './probe-outcome.ts';

/** Whom outcomes of probes are told. */
export interface ProbeReportsOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly events: EventRecorder;
  readonly metrics: Metrics;
}

/** Whose probe it is. */
export interface ReportedProbe {
  readonly pod: Pod;
  readonly place: ContainerPlace;
  readonly kind: ProbeKind;
}

const resultLabel = {
  success: 'successful',
  warning: 'successful',
  failure: 'failed',
  unknown: 'unknown',
} as const;
/** Prometheus' usual buckets, seconds. */
const durationBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Below a second, so that a period of one second is never taken for a repetition. */
const repetitionMs = 900;

/** Tells outcomes of probes in events, log and metrics. */
export class ProbeReports {
  readonly #options: ProbeReportsOptions;
  readonly #total: Counter;
  readonly #duration: Histogram;
  /** How many probes share a series of durations, by its labels. */
  readonly #sharing = new Map<string, number>();

  constructor(options: ProbeReportsOptions) {
    this.#options = options;
    this.#total = options.metrics.counter({
      name: 'prober_probe_total',
      help: '[BETA] Cumulative number of a liveness, readiness or startup probe for a container by result.',
      labels: ['container', 'namespace', 'pod', 'pod_uid', 'probe_type', 'result'],
    });
    this.#duration = options.metrics.histogram({
      name: 'prober_probe_duration_seconds',
      help: '[ALPHA] Duration in seconds for a probe response.',
      labels: ['container', 'namespace', 'pod', 'probe_type'],
      buckets: durationBuckets,
    });
  }

  /** The reports of one probe of one container instance; `end` drops its series. */
  of(initial: ReportedProbe): ProbeReport {
    const { totals, duration } = seriesLabels(initial);
    const shared = JSON.stringify(duration);
    this.#sharing.set(shared, (this.#sharing.get(shared) ?? 0) + 1);
    let lastText = '';
    let lastAt = 0;
    const event = ({ pod, place }: ReportedProbe, reason: string, text: string) => {
      const now = this.#options.clock.now();
      if (text === lastText && now - lastAt < repetitionMs) return;
      lastText = text;
      lastAt = now;
      this.#options.events.event(podEventObject(pod, place.fieldPath), 'Warning', reason, text);
    };
    return {
      outcome: (probe, outcome, { look, durationMs }) => {
        const result = resultLabel[outcome.result];
        this.#total.inc({ ...totals, result });
        // As in the kubelet, where the time a failure took is in no bucket.
        if (result !== 'failed') this.#duration.observe(durationMs / 1000, duration);
        this.#log(probe, outcome, look);
        const title = probeTitle[probe.kind];
        // What came of a look off the grid, the next regular run will say if it stays so.
        if (look && outcome.result !== 'warning') return;
        if (outcome.result === 'unknown') {
          event(probe, 'Unhealthy', `${title} probe errored and resulted in unknown state: ${outcome.error}`);
        } else if (outcome.result === 'warning') {
          event(probe, 'ProbeWarning', `${title} probe warning: ${outcome.output}`);
        } else if (outcome.result === 'failure') {
          event(probe, 'Unhealthy', `${title} probe failed: ${outcome.output}`);
        }
      },
      end: () => {
        for (const result of ['successful', 'failed', 'unknown']) this.#total.remove({ ...totals, result });
        const others = (this.#sharing.get(shared) ?? 1) - 1;
        if (others > 0) {
          this.#sharing.set(shared, others);
          return;
        }
        this.#sharing.delete(shared);
        this.#duration.remove(duration);
      },
    };
  }

  #log({ pod, place, kind }: ReportedProbe, outcome: ProbeOutcome, look: boolean): void {
    const level = outcome.result === 'failure' && !look ? 2 : 4;
    if (!this.#options.logger.enabled(level)) return;
    const { name, namespace, uid } = pod.metadata;
    this.#options.logger.v(level, 'Probed a container', {
      probeType: probeTitle[kind],
      pod: `${namespace}/${name}`,
      podUID: uid,
      containerName: place.container.name,
      probeResult: outcome.result,
      output: outcome.result === 'unknown' ? outcome.error : outcome.output,
    });
  }
}

/** Takes the outcomes of one probe, and its end. */
export interface ProbeReport {
  outcome(
    probe: ReportedProbe,
    outcome: ProbeOutcome,
    run: { readonly look: boolean; readonly durationMs: number },
  ): void;
  end(): void;
}

function seriesLabels({ pod, place, kind }: ReportedProbe): { totals: Labels; duration: Labels } {
  const { name, namespace, uid } = pod.metadata;
  const labels = { probe_type: probeTitle[kind], container: place.container.name, namespace };
  return {
    totals: { ...labels, pod: name, pod_uid: uid },
    duration: { ...labels, pod: stemOfPodName(pod) },
  };
}

/** Pods of one workload share a series: the generated end of the name and the template's hash are left out. */
function stemOfPodName({ metadata: { name, generateName, labels } }: Pod): string {
  if (!generateName) return name;
  const stem = name.slice(0, Math.max(0, name.lastIndexOf('-'))) || name;
  const templateHash = labels?.['pod-template-hash'];
  return templateHash ? stem.replaceAll(`-${templateHash}`, '') : stem;
}
