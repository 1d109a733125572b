/**
 * Runs every source of pods, merges what they say, tells the one who listens what changed, and
 * makes trouble with manifests seen: an error line and a Warning event `FailedValidation` when it appears
 * (not each time it is found again), a line when it is over, and a gauge.
 *
 * Metric `kubelet_ts_manifest_errors{source}`: manifests of a source that cannot be used now. It is labelled
 * by source only; which manifest and why is in the log and the event, where it costs no series.
 */
import type { Pod } from '../kubernetes/types.ts';
import type { EventObject, EventRecorder } from '../telemetry/events.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Gauge, Metrics } from '../telemetry/metrics.ts';
import { type DesiredChange, DesiredPods } from './desired-pods.ts';
import { type ManifestError, manifestErrorText } from './manifest-error.ts';
import type { PodSource, SourceUpdate } from './pod-source.ts';

export interface PodSourcesOptions {
  sources: readonly PodSource[];
  nodeName: string;
  log: Logger;
  events: EventRecorder;
  metrics: Metrics;
}

export class PodSources {
  readonly #options: PodSourcesOptions;
  readonly #log: Logger;
  readonly #desired: DesiredPods;
  readonly #errorGauge: Gauge;
  /** Texts of the errors that were reported and still hold. */
  #reported = new Map<string, ManifestError>();

  constructor(options: PodSourcesOptions) {
    this.#options = options;
    this.#log = options.log.with({ logger: 'sources' });
    this.#desired = new DesiredPods(options.sources.map(({ name }) => name));
    this.#errorGauge = options.metrics.gauge({
      name: 'kubelet_ts_manifest_errors',
      help: '[ALPHA] Manifests of static pods that cannot be used now, by source.',
      labels: ['source'],
    });
  }

  /** Desired pods by uid. */
  get pods(): ReadonlyMap<string, Pod> {
    return this.#desired.pods;
  }

  /** True once every source has delivered all it has; until then nothing may be cleaned up. */
  get ready(): boolean {
    return this.#desired.ready;
  }

  /** What is wrong with manifests now. */
  get errors(): readonly ManifestError[] {
    return this.#desired.errors;
  }

  /**
   * Calls `listener` for every change of the desired pods and once more when the sources become ready.
   * Resolves when `signal` is aborted. With no source it reports at once that it is ready.
   */
  async run(listener: (change: DesiredChange) => void, signal: AbortSignal): Promise<void> {
    const { sources } = this.#options;
    if (sources.length === 0) listener({ set: [], removed: [], ready: true });
    await Promise.all(sources.map((source) => source.run((update) => this.#apply(update, listener), signal)));
  }

  #apply(update: SourceUpdate, listener: (change: DesiredChange) => void): void {
    const wasReady = this.ready;
    const change = this.#desired.apply(update);
    this.#report();
    const { set, removed, ready } = change;
    if (set.length > 0 || removed.length > 0 || ready !== wasReady) {
      this.#log.v(1, 'Desired pods changed', {
        source: update.source,
        set: set.length,
        removed: removed.length,
      });
      listener(change);
    }
  }

  #report(): void {
    const { events, nodeName, sources } = this.#options;
    const now = new Map(this.#desired.errors.map((error) => [manifestErrorText(error), error]));
    for (const [text, error] of now) {
      if (this.#reported.has(text)) continue;
      const { origin, keepsLastGood } = error;
      const fields = {
        source: error.source,
        origin,
        keepsLastGood,
        ...(error.pod && { pod: podRef(error) }),
      };
      this.#log.error('Cannot use a pod manifest', text, fields);
      events.event(eventObject(error, nodeName), 'Warning', 'FailedValidation', text);
    }
    const origins = new Set([...now.values()].map(({ origin }) => origin));
    for (const { origin } of this.#reported.values()) {
      if (!origins.has(origin)) this.#log.info('The pod manifest is in order again, or gone', { origin });
    }
    this.#reported = now;
    for (const { name: source } of sources) {
      const failing = this.#desired.errors.filter((error) => error.source === source);
      this.#errorGauge.set(failing.length, { source });
    }
  }
}

function podRef({ pod }: ManifestError): string {
  return `${pod?.namespace}/${pod?.name}`;
}

/** The pod that the manifest is about, or the node when that cannot be told. */
function eventObject({ pod }: ManifestError, nodeName: string): EventObject {
  // Differs from a kubelet's pod events only in that the uid may be unknown.
  if (pod !== undefined) return { kind: 'Pod', ...pod };
  return { kind: 'Node', name: nodeName, uid: nodeName };
}
