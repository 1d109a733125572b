/** Pods as an API server hands them in: changed in place under one uid, unlike pods from manifests. */
import type { Container, ContainerStatus, Pod, PodStatus } from '../../../src/kubernetes/types.ts';
import { ContainerState } from '../../../src/runtime/generated/cri.ts';
import { until } from '../../loop/turns.ts';
import { filePod, type World } from '../../loop/world.ts';

export function apiPod(
  name: string,
  spec: Partial<Pod['spec']> = {},
  metadata: Partial<Pod['metadata']> = {},
): Pod {
  const pod = filePod(name, spec, { uid: `uid-${name}`, ...metadata });
  return { ...pod, metadata: { ...pod.metadata, annotations: { 'kubernetes.io/config.source': 'api' } } };
}

/** The same pod as the API server hands it in once it has been deleted there. */
export function marked(pod: Pod, graceSeconds = pod.spec.terminationGracePeriodSeconds): Pod {
  const deletion = {
    deletionTimestamp: '2026-01-01T00:00:00Z',
    deletionGracePeriodSeconds: graceSeconds ?? 30,
  };
  return { ...pod, metadata: { ...pod.metadata, ...deletion } };
}

/** The same pod, one container of it changed. */
export function withContainer(pod: Pod, name: string, change: Partial<Container>): Pod {
  const changed = (containers: Container[] | undefined) =>
    containers?.map((container) => (container.name === name ? { ...container, ...change } : container));
  const { initContainers, containers } = pod.spec;
  return {
    ...pod,
    spec: {
      ...pod.spec,
      containers: changed(containers) ?? [],
      ...(initContainers && { initContainers: changed(initContainers) ?? [] }),
    },
  };
}

/** `container image` of every start the runtime was asked for, in order. */
export function starts({ runtime }: World): string[] {
  return runtime.requestsOf('StartContainer').map(({ containerId }) => describe(runtime, containerId));
}

function describe({ calls }: World['runtime'], containerId: string): string {
  return startedAs.get(calls)?.get(containerId) ?? containerId;
}

/** By the runtime's list of calls: what containers were made as, which outlives their removal. */
const startedAs = new WeakMap<object, Map<string, string>>();

/** Remembers containers as they are made, for {@link starts}. */
export function watchStarts({ runtime }: World): void {
  const made = new Map<string, string>();
  startedAs.set(runtime.calls, made);
  runtime.onEvent(({ kind, id }) => {
    const container = kind === 'created' && runtime.containers.find((one) => one.id === id);
    if (container) made.set(id, `${container.name} ${container.config.image?.userSpecifiedImage}`);
  });
}

/** Waits, without moving time, until a container runs with this image. */
export async function untilRuns(world: World, name: string, image?: string): Promise<void> {
  const isIt = () =>
    world.runtime.containers.some(
      (container) =>
        container.name === name &&
        container.state === ContainerState.CONTAINER_RUNNING &&
        (image === undefined || container.config.image?.userSpecifiedImage === image),
    );
  await until(isIt, () => `${name} never ran ${image ?? ''}: ${JSON.stringify(world.snapshot())}`);
}

export function statusOf(status: PodStatus | undefined, name: string): ContainerStatus | undefined {
  const { initContainerStatuses = [], containerStatuses = [] } = status ?? {};
  return [...initContainerStatuses, ...containerStatuses].find((container) => container.name === name);
}
