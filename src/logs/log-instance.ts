/**
 * Which instance of a container a request for its log means, by the status the pod shows. What cannot be
 * read yet, or any more, is told in Kubernetes' own words, which people and tools know.
 */
import type { ContainerStatus, PodStatus } from '../kubernetes/types.ts';

/** An instance that the runtime still has. */
export interface LoggedInstance {
  readonly id: string;
  readonly attempt: number;
  /** Absolute path of its live log; absent when the runtime keeps none. */
  readonly logPath?: string;
}

export interface LogInstanceRequest {
  readonly pod: string;
  readonly container: string;
  /** 0: the newest; 1: the one before it. */
  readonly previous: number;
  readonly status: PodStatus | undefined;
  /** All instances of the container, newest first. */
  readonly instances: readonly LoggedInstance[];
}

/** There is no log to show. The message goes to the client, with 400. */
export class NoInstanceError extends Error {
  override name = 'NoInstanceError';
}

export function logInstance(request: LogInstanceRequest): LoggedInstance {
  const { pod, container, previous, status, instances } = request;
  const named = `container ${JSON.stringify(container)} in pod ${JSON.stringify(pod)}`;
  const shown = statusOf(status, container);
  if (!shown) throw new NoInstanceError(`${named} is not available`);
  const id = plainId(idOf(shown, previous, named, { pod, container }));
  const at = instances.findIndex((instance) => instance.id === id);
  // Of the instances before the last one, the status says nothing; the runtime has them or not.
  const instance = at < 0 ? undefined : instances[at + Math.max(0, previous - 1)];
  if (!instance) {
    throw new NoInstanceError(
      previous > 0
        ? notFound(pod, container)
        : `unable to retrieve container logs for ${id}: it is gone from the runtime`,
    );
  }
  return instance;
}

function idOf(
  { state, lastState, containerID }: ContainerStatus,
  previous: number,
  named: string,
  { pod, container }: { pod: string; container: string },
): string {
  const { running, terminated, waiting } = state ?? {};
  const last = lastState?.terminated;
  if (previous > 0) {
    if (!last?.containerID) throw new NoInstanceError(notFound(pod, container));
    return last.containerID;
  }
  if (running) return containerID ?? '';
  if (terminated || last) {
    // When the next one did not start, the log of the last one that ran is what there is.
    const id = terminated?.containerID || last?.containerID;
    if (!id) throw new NoInstanceError(`${named} is terminated`);
    return id;
  }
  if (!waiting) throw new NoInstanceError(`${named} is waiting to start - no logs yet`);
  throw new NoInstanceError(`${named} is waiting to start: ${wordsFor(waiting.reason ?? '')}`);
}

function wordsFor(reason: string): string {
  if (reason === 'ErrImagePull') return "image can't be pulled";
  if (reason === 'ImagePullBackOff') return 'trying and failing to pull image';
  return reason;
}

function notFound(pod: string, container: string): string {
  return `previous terminated container ${JSON.stringify(container)} in pod ${JSON.stringify(pod)} not found`;
}

function statusOf(status: PodStatus | undefined, container: string): ContainerStatus | undefined {
  const { containerStatuses, initContainerStatuses, ephemeralContainerStatuses } = status ?? {};
  for (const list of [containerStatuses, initContainerStatuses, ephemeralContainerStatuses]) {
    const found = list?.find(({ name }) => name === container);
    if (found) return found;
  }
  return undefined;
}

/** The runtime's own id of `containerd://<id>`. */
function plainId(id: string): string {
  return id.replace(/^[^:]*:\/\//, '');
}
