/**
 * When a probe of one container instance runs. Pure: times in, times out.
 *
 * Regular runs lie on a grid that is fixed when the probe opens (`openAt`: the container's start plus the
 * initial delay, or the moment its startup probe succeeded): `firstRegularAt + k · period`. However long a
 * run takes, the grid does not move. Its phase comes from a hash of the container id, so it is the same after
 * a restart of the agent and differs between containers that start together.
 *
 * Differs from the kubelet: what nobody waits for (liveness) keeps to the grid; what a pod waits for
 * (startup; readiness that has not been reached yet) is looked at in between, at once when the probe opens
 * and then after doubling pauses until the first regular run. A look that succeeds counts; one that does not
 * counts for nothing, so thresholds take as long as on any node. The kubelet, whose first run comes at any
 * moment of the first period, has runs here and there at pod updates instead.
 */
import { fnv1a32 } from '../kubernetes/hash.ts';
import type { ProbeKind } from './probe-kind.ts';
import type { ProbeTiming } from './probe-timing.ts';

/** The times at which a probe runs. */
export interface Rhythm {
  /** Epoch milliseconds, as every time here. */
  readonly openAt: number;
  readonly firstRegularAt: number;
  readonly periodMs: number;
  /** The pause after the first look; each further one is twice as long. Absent: no looks. */
  readonly lookPauseMs?: number;
  /** Spreads what would otherwise coincide, below 2^32. */
  readonly spread: number;
}

/** A run of a probe, and when it is due. */
export interface Run {
  readonly at: number;
  /** A run off the grid, whose failure counts for nothing. */
  readonly look: boolean;
}

/** The pauses of looks: an exec probe costs a process in the container, the others next to nothing. */
const lookPauseMs = { network: 100, exec: 1000 } as const;

/** Looks at containers that an earlier agent left behind without a word about them spread over this time. */
const adoptionSpreadMs = 1000;

/** The rhythm of a probe. */
export function probeRhythm(input: {
  readonly kind: ProbeKind;
  readonly handler: keyof typeof lookPauseMs;
  readonly timing: Pick<ProbeTiming, 'periodMs'>;
  readonly containerId: string;
  readonly openAt: number;
}): Rhythm {
  const { kind, openAt } = input;
  const { periodMs } = input.timing;
  const spread = fnv1a32(`${input.containerId}/${kind}`);
  // The later half of the first period: nothing is judged sooner than on a node that starts its ticks with
  // the pod, and no full period passes without a run.
  const half = Math.ceil(periodMs / 2);
  return {
    openAt,
    firstRegularAt: openAt + half + (spread % Math.max(1, periodMs - half)),
    periodMs,
    spread,
    ...(kind === 'liveness' ? {} : { lookPauseMs: lookPauseMs[input.handler] }),
  };
}

/** The first run of a probe that is put in place at `now`. `wanting`: nothing has succeeded yet. */
export function firstRun(rhythm: Rhythm, now: number, wanting: boolean): Run {
  if (!wanting || rhythm.lookPauseMs === undefined) return nextRegular(rhythm, now);
  const at = Math.max(now, rhythm.openAt);
  if (at < rhythm.firstRegularAt) return { at, look: true };
  return { at: at + (rhythm.spread % Math.min(rhythm.periodMs, adoptionSpreadMs)), look: true };
}

/** The run that follows one that was over at `after`. */
export function nextRun(rhythm: Rhythm, after: number, wanting: boolean): Run {
  if (wanting && rhythm.lookPauseMs !== undefined) {
    let pause = rhythm.lookPauseMs;
    let at = rhythm.openAt;
    for (; at <= after; pause *= 2) at += pause;
    if (at < rhythm.firstRegularAt) return { at, look: true };
  }
  return nextRegular(rhythm, after);
}

function nextRegular({ firstRegularAt, periodMs }: Rhythm, after: number): Run {
  if (after < firstRegularAt) return { at: firstRegularAt, look: false };
  const periods = Math.floor((after - firstRegularAt) / periodMs) + 1;
  return { at: firstRegularAt + periods * periodMs, look: false };
}
