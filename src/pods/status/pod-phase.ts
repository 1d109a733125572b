/** The phase of a pod: one word for where it stands in its life. */

import type { ContainerPlace } from '../../kubernetes/init-containers.ts';
import type { ContainerStatus } from '../../kubernetes/types.ts';
import { isLive, newestInstance } from '../instances.ts';
import type { PodView } from '../pod-view.ts';
import { mayRestart } from '../restart-rule.ts';

/** `status.phase` as far as a node decides it. */
export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed';

/** What the phase of a pod is made from. */
export interface PhaseInput {
  readonly view: PodView;
  readonly containers: readonly ContainerPlace[];
  readonly statuses: Readonly<Record<string, ContainerStatus>>;
}

/** The phase. A terminal one only when no process of the pod can be running any more. */
export function podPhase(input: PhaseInput): PodPhase {
  const { view, containers, statuses } = input;
  // The end is told only once no container can be running any more.
  if (view.memory.terminal && isOver(view)) return view.memory.terminal.phase;

  const mainStarted = containers.some(
    ({ container: spec, kind }) => kind === 'regular' && hasRun(statuses[spec.name]),
  );
  for (const { container: spec, kind } of containers) {
    const status = statuses[spec.name];
    if (kind === 'init') {
      const ended = status?.state?.terminated;
      if (ended?.exitCode === 0 || mainStarted) continue;
      // Waiting for the next try after an end is still initialising, and so is a failure for good until
      // the last process has ended.
      return 'Pending';
    }
    if (kind === 'sidecar' && !mainStarted && status?.started !== true) return 'Pending';
  }

  const counts = { running: 0, waiting: 0, ended: 0, failed: 0, restarting: 0 };
  for (const { container: spec, kind } of containers) {
    if (kind !== 'regular') continue;
    const { state, lastState } = statuses[spec.name] ?? {};
    if (state?.running) counts.running++;
    else if (state?.terminated) countEnd(state.terminated.exitCode, restarts(input, spec.name));
    else if (lastState?.terminated) countEnd(lastState.terminated.exitCode, true);
    else counts.waiting++;
  }
  function countEnd(exitCode: number, again: boolean) {
    counts.ended++;
    if (exitCode !== 0) counts.failed++;
    if (again) counts.restarting++;
  }

  if (counts.waiting > 0) return 'Pending';
  if (counts.running > 0 || counts.restarting > 0) return 'Running';
  return counts.ended > 0 ? 'Running' : 'Pending';
}

/** True when a pod that has come to its end has no process left, so that its terminal phase may be told. */
export function isOver({ memory, observed }: PodView): boolean {
  return memory.terminal !== undefined && !observed.containers.some(isLive);
}

function hasRun(status: ContainerStatus | undefined): boolean {
  return Boolean(status?.state?.running ?? status?.state?.terminated ?? status?.lastState?.terminated);
}

function restarts({ view, containers }: PhaseInput, name: string): boolean {
  const place = containers.find(({ container }) => container.name === name);
  const instance = newestInstance(view.observed, name);
  return !!place && (!instance || mayRestart(view, place.container, place.kind, instance));
}
