/**
 * The threshold machine of one probe: results come in, a verdict changes only after enough equal ones in a
 * row. Pure.
 */
import type { ProbeKind } from './probe-kind.ts';

/** What a probe says of its container. */
export type Verdict = 'success' | 'failure' | 'unknown';

/** Outcomes in a row that change the verdict. */
export interface Thresholds {
  readonly successThreshold: number;
  readonly failureThreshold: number;
}

/** The verdict of a probe, and what has come since that may change it. */
export interface ProbeState {
  readonly verdict: Verdict;
  /** The result that came last; absent before the first. */
  readonly last?: 'success' | 'failure';
  /** How many results equal to `last` came in a row. */
  readonly inARow: number;
}

const initialVerdicts: Readonly<Record<ProbeKind, Verdict>> = {
  startup: 'unknown',
  liveness: 'success',
  readiness: 'failure',
};

/**
 * The state of a container instance that was never probed, or, with `verdict`, of one that an earlier agent
 * came to a verdict about.
 */
export function initialState(kind: ProbeKind, verdict: Verdict = initialVerdicts[kind]): ProbeState {
  return { verdict, inARow: 0 };
}

/** What `result` makes of `state`. Results that say nothing (`unknown`) are not handed in. */
export function afterResult(
  state: ProbeState,
  result: 'success' | 'failure',
  { successThreshold, failureThreshold }: Thresholds,
): ProbeState {
  const inARow = state.last === result ? state.inARow + 1 : 1;
  const needed = result === 'success' ? successThreshold : failureThreshold;
  return { verdict: inARow >= needed ? result : state.verdict, last: result, inARow };
}
