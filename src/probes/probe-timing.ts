/** When and how often a probe runs, in milliseconds: the fields of the Pod, refined by its annotation. */
import type { Probe } from '../kubernetes/types.ts';
import type { Thresholds } from './probe-state.ts';

/** The times of a probe, milliseconds. */
export interface ProbeTiming extends Thresholds {
  readonly initialDelayMs: number;
  readonly periodMs: number;
  readonly timeoutMs: number;
}

/** What the annotation may say of one probe. */
export interface TimingOverride {
  readonly initialDelayMilliseconds?: number;
  readonly periodMilliseconds?: number;
  readonly timeoutMilliseconds?: number;
}

/** Zero stands for the API's default, as everywhere in these fields. */
export function probeTiming(probe: Probe, override: TimingOverride = {}): ProbeTiming {
  return {
    initialDelayMs: override.initialDelayMilliseconds ?? (probe.initialDelaySeconds ?? 0) * 1000,
    periodMs: override.periodMilliseconds ?? (probe.periodSeconds || 10) * 1000,
    timeoutMs: override.timeoutMilliseconds ?? (probe.timeoutSeconds || 1) * 1000,
    successThreshold: probe.successThreshold || 1,
    failureThreshold: probe.failureThreshold || 3,
  };
}

/** True when both run alike. */
export function sameTiming(a: ProbeTiming, b: ProbeTiming): boolean {
  return (
    a.initialDelayMs === b.initialDelayMs &&
    a.periodMs === b.periodMs &&
    a.timeoutMs === b.timeoutMs &&
    a.successThreshold === b.successThreshold &&
    a.failureThreshold === b.failureThreshold
  );
}
