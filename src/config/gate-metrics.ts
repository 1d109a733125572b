/** Which feature gates are on, as `/metrics` tells it. */
import type { Metrics } from '../telemetry/metrics.ts';
import { FEATURE_GATES, type FeatureGates } from './feature-gates.ts';

/** As the metric spells stages; gates that are there for good have none. */
const stages = { Alpha: 'ALPHA', Beta: 'BETA', Deprecated: 'DEPRECATED', GA: '' } as const;

export function declareGateMetrics(metrics: Metrics, gates: FeatureGates): void {
  const enabled = metrics.gauge({
    name: 'kubernetes_feature_enabled',
    help: '[BETA] 1 for a feature gate that is on, 0 for one that is off.',
    labels: ['name', 'stage'],
  });
  for (const [name, isOn] of gates.entries()) {
    enabled.set(Number(isOn), { name, stage: stages[FEATURE_GATES[name].stage] });
  }
}
