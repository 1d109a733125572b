/** The conditions of a pod, each with the reason and message Kubernetes users know. */

import type { ContainerPlace } from '../../kubernetes/init-containers.ts';
import { disruption, isKubeletCondition } from '../../kubernetes/kubelet-conditions.ts';
import type { ContainerStatus, PodCondition } from '../../kubernetes/types.ts';
import { isRestartingAll, mayRestartAll } from '../decide-restart-all.ts';
import { admissionPending } from '../decide-run.ts';
import { usableSandbox } from '../instances.ts';
import { volumesFailure } from '../plan.ts';
import type { PodView } from '../pod-view.ts';
import { timestamp } from './container-status.ts';
import { isOver, type PodPhase } from './pod-phase.ts';

/** What the conditions of a pod are made from. */
export interface ConditionsInput {
  readonly view: PodView;
  readonly phase: PodPhase;
  readonly containers: readonly ContainerPlace[];
  readonly statuses: Readonly<Record<string, ContainerStatus>>;
  /** Conditions reported last: unchanged ones keep their transition time, foreign ones stay. */
  readonly previous: readonly PodCondition[];
}

type Verdict = Pick<PodCondition, 'type' | 'status' | 'reason' | 'message'>;

/**
 * The conditions of a pod (core/v1 PodCondition): the node's own, in a fixed order, then everybody
 * else's.
 */
export function podConditions(input: ConditionsInput): PodCondition[] {
  const containersReady = containersReadyCondition(input);
  const verdicts: Verdict[] = [
    readyToStartContainers(input),
    initialized(input),
    ready(input, containersReady),
    containersReady,
    { type: 'PodScheduled', status: 'True' },
    ...(mayRestartAll(input.view.pod) ? [allContainersRestarting(input)] : []),
    ...disrupted(input.view),
  ];
  const told = new Set(verdicts.map(({ type }) => type));
  const foreign = input.previous.filter(
    (condition) => !isKubeletCondition(condition) && !told.has(condition.type),
  );
  return [...verdicts.map((verdict) => withTransition(verdict, input)), ...foreign];
}

function withTransition(verdict: Verdict, { previous, view }: ConditionsInput): PodCondition {
  const before = previous.find((condition) => condition.type === verdict.type);
  const lastTransitionTime =
    before?.status === verdict.status && before.lastTransitionTime
      ? before.lastTransitionTime
      : timestamp(view.now);
  const observedGeneration = view.pod.metadata.generation;
  return {
    ...verdict,
    lastTransitionTime,
    ...(observedGeneration === undefined ? {} : { observedGeneration }),
  };
}

function readyToStartContainers({ view, phase }: ConditionsInput): Verdict {
  const { held } = view.memory;
  if (held && phase === 'Pending') {
    const { message } = held;
    return { type: 'PodReadyToStartContainers', status: 'False', reason: admissionPending, message };
  }
  const usable = usableSandbox(view.observed, view.pod.spec.hostNetwork === true);
  const over = phase === 'Succeeded' || phase === 'Failed';
  const type = 'PodReadyToStartContainers';
  if (usable && !over) return { type, status: 'True' };
  // Differs from the kubelet, whose condition gives no reason: here it names the volumes that are missing.
  const failure = over ? undefined : volumesFailure(view);
  return {
    type,
    status: 'False',
    ...(failure && { reason: failure.reason, message: failure.message }),
  };
}

function allContainersRestarting({ view, phase }: ConditionsInput): Verdict {
  const type = 'AllContainersRestarting';
  if (phase === 'Succeeded') return { type, status: 'False', reason: 'PodCompleted' };
  if (phase === 'Failed') return { type, status: 'False', reason: 'PodFailed' };
  if (!isRestartingAll(view)) return { type, status: 'False' };
  return { type, status: 'True', reason: 'RestartAllContainersStarted' };
}

/** Told together with the end, not before. */
function disrupted(view: PodView): Verdict[] {
  const message = isOver(view) ? view.memory.terminal?.disruption : undefined;
  return message === undefined ? [] : [{ ...disruption, status: 'True', message }];
}

function initialized({ phase, containers, statuses }: ConditionsInput): Verdict {
  const type = 'Initialized';
  if (phase === 'Succeeded') return { type, status: 'True', reason: 'PodCompleted' };
  const mainStarted = containers.some(({ container: spec, kind }) => {
    const status = statuses[spec.name];
    return (
      kind === 'regular' &&
      (status?.state?.running || status?.state?.terminated || status?.lastState?.terminated)
    );
  });
  const incomplete = containers.filter(({ container: spec, kind }) => {
    const status = statuses[spec.name];
    if (kind === 'init') return status?.state?.terminated?.exitCode !== 0;
    return kind === 'sidecar' && status?.started !== true;
  });
  if (mainStarted || incomplete.length === 0) return { type, status: 'True' };
  return {
    type,
    status: 'False',
    reason: 'ContainersNotInitialized',
    message: `containers with incomplete status: [${names(incomplete)}]`,
  };
}

function containersReadyCondition({ phase, containers, statuses }: ConditionsInput): Verdict {
  const type = 'ContainersReady';
  if (phase === 'Succeeded') return { type, status: 'False', reason: 'PodCompleted' };
  if (phase === 'Failed') return { type, status: 'False', reason: 'PodFailed' };
  const counted = containers.filter(({ kind }) => kind === 'regular' || kind === 'sidecar');
  const unready = counted.filter(({ container: spec }) => statuses[spec.name]?.ready !== true);
  if (unready.length === 0) return { type, status: 'True' };
  return {
    type,
    status: 'False',
    reason: 'ContainersNotReady',
    message: `containers with unready status: [${names(unready)}]`,
  };
}

function ready({ view, previous }: ConditionsInput, containersReady: Verdict): Verdict {
  const type = 'Ready';
  if (containersReady.status !== 'True') return { ...containersReady, type };
  const closed = (view.pod.spec.readinessGates ?? []).flatMap(({ conditionType }) => {
    const condition = previous.find(({ type }) => type === conditionType);
    if (condition?.status === 'True') return [];
    return condition
      ? [`the status of pod readiness gate "${conditionType}" is not "True", but ${condition.status}`]
      : [`corresponding condition of pod readiness gate "${conditionType}" does not exist.`];
  });
  if (closed.length === 0) return { type, status: 'True' };
  return { type, status: 'False', reason: 'ReadinessGatesNotReady', message: closed.join(', ') };
}

const names = (containers: readonly ContainerPlace[]) =>
  containers.map(({ container: spec }) => spec.name).join(' ');
