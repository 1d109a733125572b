/** What the probes of one container say together, and which of them may run. Pure. */
import type { ProbeKind } from './probe-kind.ts';
import type { Verdict } from './probe-state.ts';

/** What the probes say of a container instance. */
export interface ContainerHealth {
  readonly started: boolean;
  readonly ready: boolean;
  /** A probe has failed often enough that the container must go. */
  readonly failed?: { readonly probe: 'liveness' | 'startup'; readonly graceSeconds?: number };
}

/** What the probes of a container come to together. */
export interface ContainerVerdict {
  readonly health: ContainerHealth;
  readonly open: Readonly<Record<ProbeKind, boolean>>;
}

/** What each probe says; absent for a probe the container does not have. */
export interface Verdicts {
  /** By probe the container has. */
  readonly verdicts: Readonly<Partial<Record<ProbeKind, Verdict>>>;
  /** The pod is ending: liveness and startup count as success and run no more, readiness goes on. */
  readonly terminating: boolean;
  /** The probe's own `terminationGracePeriodSeconds`. */
  readonly graceSeconds?: Readonly<Partial<Record<ProbeKind, number>>>;
}

/** Joins what the probes say, by Kubernetes' rules of gating. */
export function containerVerdict({ verdicts, terminating, graceSeconds }: Verdicts): ContainerVerdict {
  const started = verdicts.startup === undefined || verdicts.startup === 'success' || terminating;
  const ready = started && (verdicts.readiness === undefined || verdicts.readiness === 'success');
  const failed = terminating ? undefined : failedProbe(verdicts);
  const grace = failed && graceSeconds?.[failed];
  return {
    health: {
      started,
      ready,
      ...(failed && { failed: { probe: failed, ...(grace !== undefined && { graceSeconds: grace }) } }),
    },
    open: {
      // After the failure that ends the container, neither has anything left to say.
      startup: !started && !failed,
      liveness: started && !terminating && !failed,
      readiness: started,
    },
  };
}

function failedProbe(verdicts: Verdicts['verdicts']): 'startup' | 'liveness' | undefined {
  if (verdicts.startup === 'failure') return 'startup';
  return verdicts.liveness === 'failure' ? 'liveness' : undefined;
}

/** True when nobody has to be told of the difference. */
export function sameHealth(a: ContainerHealth, b: ContainerHealth): boolean {
  return (
    a.started === b.started &&
    a.ready === b.ready &&
    a.failed?.probe === b.failed?.probe &&
    a.failed?.graceSeconds === b.failed?.graceSeconds
  );
}
