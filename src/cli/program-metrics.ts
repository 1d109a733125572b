/** The registries of the program, with what is true of it whatever the agent does. */
import type { FeatureGates } from '../config/feature-gates.ts';
import { declareGateMetrics } from '../config/gate-metrics.ts';
import { declareBuildInfo, MetricsRegistry } from '../telemetry/metrics-registry.ts';
import { declareProcessMetrics, declareProcessStart } from '../telemetry/process-metrics.ts';

export interface ProgramMetrics {
  /** What `/metrics` shows. */
  readonly metrics: MetricsRegistry;
  /** What `/metrics/probes` shows. */
  readonly probeMetrics: MetricsRegistry;
}

/** `reportedVersion`: `vX.Y.Z`. */
export function programMetrics(gates: FeatureGates, reportedVersion: string): ProgramMetrics {
  const metrics = new MetricsRegistry();
  const version = reportedVersion.replace(/^v/, '');
  declareBuildInfo(metrics, { version, gitCommit: '', gitTreeState: '', buildDate: '' });
  declareGateMetrics(metrics, gates);
  declareProcessMetrics(metrics);
  metrics.declareCountOfMetrics();
  const probeMetrics = new MetricsRegistry();
  declareProcessStart(probeMetrics);
  return { metrics, probeMetrics };
}
