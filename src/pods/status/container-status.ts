/** The status of one container, from its instances and from what the plan waits for. */

import type { ContainerPlace } from '../../kubernetes/init-containers.ts';
import type { ContainerState, ContainerStatus } from '../../kubernetes/types.ts';
import type { ObservedContainer } from '../../runtime/observed-pod.ts';
import { hasStarted } from '../decide-containers.ts';
import { restartingAllContainers } from '../decide-restart-all.ts';
import { instancesOf } from '../instances.ts';
import type { Waiting } from '../plan.ts';
import type { PodView } from '../pod-view.ts';

/** What the status of one container is made from. */
export interface ContainerStatusInput {
  readonly view: PodView;
  readonly place: ContainerPlace;
  readonly waiting: Waiting | undefined;
  /** The runtime's name, for container ids such as `containerd://4f2…`. */
  readonly runtimeName: string;
  /** The status reported last, which keeps what the runtime has forgotten. */
  readonly previous?: ContainerStatus;
}

/** The status of one container (core/v1 ContainerStatus). */
export function containerStatus(input: ContainerStatusInput): ContainerStatus {
  const { view, place, waiting, previous } = input;
  const { container: spec, kind } = place;
  const [newest, ...older] = instancesOf(view.observed, spec.name);
  if (!newest) return vanished(input) ?? neverMade(input);

  const state = instanceState(newest, input);
  // A reason to wait hides the end of the newest instance, which then becomes the last state.
  const hidden = waiting?.reason && newest.state === 'Exited' ? { waiting: asState(waiting) } : undefined;
  const dead = older.find((instance) => instance.state === 'Exited');
  const lastState = hidden ? state : dead ? instanceState(dead, input) : (previous?.lastState ?? {});
  const running = newest.state === 'Running';
  const started = running && hasStarted(view, spec, newest);
  const ready =
    kind === 'init'
      ? newest.state === 'Exited' && newest.exitCode === 0
      : started && (spec.readinessProbe === undefined || view.health[newest.id]?.ready === true);

  return {
    name: spec.name,
    state: hidden ?? (newest.state === 'Created' && waiting?.reason ? { waiting: asState(waiting) } : state),
    lastState,
    ready,
    restartCount: newest.attempt,
    image: newest.image,
    imageID: newest.imageId,
    containerID: `${input.runtimeName}://${newest.id}`,
    started,
    ...(newest.user
      ? { user: { linux: { ...newest.user, supplementalGroups: [...newest.user.supplementalGroups] } } }
      : {}),
  };
}

function neverMade({ view, place, waiting }: ContainerStatusInput): ContainerStatus {
  const { container: spec, kind } = place;
  const fallback = (view.pod.spec.initContainers ?? []).length > 0 ? 'PodInitializing' : 'ContainerCreating';
  return {
    name: spec.name,
    state: { waiting: asState(waiting?.reason ? waiting : { reason: fallback }) },
    lastState: {},
    ready: false,
    restartCount: 0,
    image: spec.image ?? '',
    imageID: '',
    ...(kind === 'ephemeral' ? {} : { started: false }),
  };
}

/** A container the runtime has lost: what was last reported stands, a run becomes an unknown end. */
function vanished({ view, previous, waiting }: ContainerStatusInput): ContainerStatus | undefined {
  if (!previous?.containerID) return undefined;
  if (previous.state?.terminated) {
    if (!waiting?.reason || view.memory.terminal) return previous;
    const { terminated } = previous.state;
    // A container that was removed to start the whole pod over ended because of that, whatever its code.
    const isRestart = waiting.reason === restartingAllContainers.reason;
    const lastState = {
      terminated: isRestart ? { ...terminated, ...restartingAllContainers, exitCode: 137 } : terminated,
    };
    return { ...previous, ready: false, started: false, state: { waiting: asState(waiting) }, lastState };
  }
  if (!previous.state?.running) return previous;
  const lost: ContainerState = {
    terminated: {
      reason: 'ContainerStatusUnknown',
      message: 'The container could not be located when the pod was terminated',
      exitCode: 137,
    },
  };
  const rest = { ...previous, ready: false, started: false };
  if (view.intent.kind === 'terminate' || view.memory.terminal) return { ...rest, state: lost };
  const next = waiting?.reason ? waiting : { reason: 'ContainerCreating' };
  return {
    ...rest,
    state: { waiting: asState(next) },
    lastState: lost,
    restartCount: previous.restartCount + 1,
  };
}

function instanceState(
  instance: ObservedContainer,
  { runtimeName, view }: ContainerStatusInput,
): ContainerState {
  switch (instance.state) {
    case 'Running':
      return { running: { startedAt: timestamp(instance.startedAt ?? instance.createdAt) } };
    case 'Created':
      return { waiting: {} };
    case 'Exited':
      return {
        terminated: {
          exitCode: instance.exitCode ?? 137,
          reason: instance.reason ?? (instance.exitCode === 0 ? 'Completed' : 'Error'),
          ...((view.messages[instance.id] ?? instance.message)
            ? { message: view.messages[instance.id] ?? instance.message }
            : {}),
          ...(instance.startedAt === undefined ? {} : { startedAt: timestamp(instance.startedAt) }),
          ...(instance.finishedAt === undefined ? {} : { finishedAt: timestamp(instance.finishedAt) }),
          containerID: `${runtimeName}://${instance.id}`,
        },
      };
    case 'Unknown':
      return {
        terminated: {
          exitCode: 137,
          reason: 'ContainerStatusUnknown',
          message: 'The runtime does not know the state of the container',
          containerID: `${runtimeName}://${instance.id}`,
        },
      };
  }
}

const asState = ({ reason, message }: Waiting) => ({
  ...(reason ? { reason } : {}),
  ...(message ? { message } : {}),
});

/** RFC 3339 with whole seconds, as Kubernetes writes times. */
export function timestamp(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
