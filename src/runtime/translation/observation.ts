/** From the runtime's answers to what deciding reads. Pure. */
import { containerAnnotations, runtimeLabels } from '../../kubernetes/pod-identity.ts';
import {
  type Container,
  ContainerState,
  type ContainerStatus,
  type ImageSpec,
  NamespaceMode,
  type PodSandbox,
  PodSandboxState,
  type PodSandboxStatus,
} from '../generated/cri.ts';
import type { ObservedContainer, ObservedSandbox } from '../observed-pod.ts';

/** The state of a sandbox in a word. */
export function sandboxState(state: PodSandboxState): ObservedSandbox['state'] {
  return state === PodSandboxState.SANDBOX_READY ? 'Ready' : 'NotReady';
}

/** The state of a container in a word; `Unknown` for states of a newer CRI. */
export function containerState(state: ContainerState): ObservedContainer['state'] {
  switch (state) {
    case ContainerState.CONTAINER_CREATED:
      return 'Created';
    case ContainerState.CONTAINER_RUNNING:
      return 'Running';
    case ContainerState.CONTAINER_EXITED:
      return 'Exited';
    default:
      return 'Unknown';
  }
}

/** Epoch milliseconds, to the microsecond, of the runtime's nanoseconds; `undefined` for "not yet". */
export function millisecondsOf(nanoseconds: bigint): number | undefined {
  return nanoseconds > 0n ? Number(nanoseconds / 1000n) / 1000 : undefined;
}

/** A sandbox in full, with its addresses. */
export function observeSandbox(status: PodSandboxStatus): ObservedSandbox {
  const ips = [status.network?.ip ?? '', ...(status.network?.additionalIps ?? []).map(({ ip }) => ip)];
  return {
    ...observeListedSandbox(status),
    ips: ips.filter((ip) => ip !== ''),
    hostNetwork: status.linux?.namespaces?.options?.network === NamespaceMode.NODE,
  };
}

/** A sandbox as a list shows it: without addresses, and its network unknown. */
export function observeListedSandbox(
  listed: Pick<PodSandbox, 'id' | 'state' | 'metadata' | 'createdAt'>,
): ObservedSandbox {
  return {
    id: listed.id,
    state: sandboxState(listed.state),
    attempt: listed.metadata?.attempt ?? 0,
    createdAt: millisecondsOf(listed.createdAt) ?? 0,
    ips: [],
    hostNetwork: false,
  };
}

/** A container in full. Its status does not say which sandbox it is in, so the caller has to. */
export function observeContainer(status: ContainerStatus, sandboxId: string): ObservedContainer {
  const startedAt = millisecondsOf(status.startedAt);
  const finishedAt = millisecondsOf(status.finishedAt);
  const user = status.user?.linux;
  return {
    ...observeListedContainer({ ...status, podSandboxId: sandboxId }),
    ...(startedAt === undefined ? {} : { startedAt }),
    ...(finishedAt === undefined ? {} : { finishedAt }),
    ...(status.state === ContainerState.CONTAINER_EXITED ? { exitCode: status.exitCode } : {}),
    ...(status.reason ? { reason: status.reason } : {}),
    ...(status.message ? { message: status.message } : {}),
    ...(status.logPath ? { logPath: status.logPath } : {}),
    ...(user
      ? {
          user: {
            uid: Number(user.uid),
            gid: Number(user.gid),
            supplementalGroups: user.supplementalGroups.map(Number),
          },
        }
      : {}),
  };
}

/** A container as a list shows it: no times but its creation, no exit. */
export function observeListedContainer(
  listed: Pick<
    Container,
    | 'id'
    | 'podSandboxId'
    | 'metadata'
    | 'state'
    | 'createdAt'
    | 'image'
    | 'imageRef'
    | 'imageId'
    | 'labels'
    | 'annotations'
  >,
): ObservedContainer {
  return {
    id: listed.id,
    name: listed.metadata?.name || (listed.labels[runtimeLabels.containerName] ?? ''),
    sandboxId: listed.podSandboxId,
    attempt: listed.metadata?.attempt ?? 0,
    state: containerState(listed.state),
    createdAt: millisecondsOf(listed.createdAt) ?? 0,
    image: imageName(listed.image),
    imageId: listed.imageRef || listed.imageId,
    hash: listed.annotations[containerAnnotations.hash] ?? '',
    annotations: listed.annotations,
  };
}

/** Runtimes that forget what the user wrote tell the name they resolved it to. */
function imageName(image: ImageSpec | undefined): string {
  return image?.userSpecifiedImage || (image?.image ?? '');
}
