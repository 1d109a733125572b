/**
 * Labels and annotations on what the agent makes in the runtime. They are its memory: after a restart it
 * reads from them whose a container is, what it was made from and how it has to be stopped.
 */
import { containerHash } from '../../kubernetes/hash.ts';
import { containerAnnotations as names, runtimeLabels } from '../../kubernetes/pod-identity.ts';
import type { Container, Pod } from '../../kubernetes/types.ts';

type Texts = Record<string, string>;

/** The pod's own labels, and the three that name it. */
export function sandboxLabels(pod: Pod): Texts {
  return { ...pod.metadata.labels, ...podNames(pod) };
}

/** Labels by which a container is found again: the pod's names and the container's. */
export function containerLabels(pod: Pod, container: Pick<Container, 'name'>): Texts {
  return { ...podNames(pod), [runtimeLabels.containerName]: container.name };
}

export interface ContainerAnnotationInput {
  readonly pod: Pod;
  readonly container: Container;
  readonly restartCount: number;
  /** From device plugins and for the agent's own bookkeeping; Kubernetes' names win over them. */
  readonly extra?: Readonly<Record<string, string>> | undefined;
}

/**
 * Annotations that say what a container was made from (`io.kubernetes.container.*`), for adopting it after a
 * restart.
 */
export function containerAnnotations(input: ContainerAnnotationInput): Texts {
  const { pod, container, restartCount, extra } = input;
  const { ports, lifecycle } = container;
  const deletionGrace = pod.metadata.deletionGracePeriodSeconds;
  const result: Texts = {
    ...extra,
    [names.hash]: containerHash(container),
    [names.restartCount]: String(restartCount),
    [names.terminationMessagePath]: container.terminationMessagePath ?? '',
    [names.terminationMessagePolicy]: container.terminationMessagePolicy ?? '',
    [names.podTerminationGracePeriod]: String(pod.spec.terminationGracePeriodSeconds),
  };
  if (deletionGrace !== undefined) result[names.podDeletionGracePeriod] = String(deletionGrace);
  if (lifecycle?.preStop) result[names.preStopHandler] = JSON.stringify(lifecycle.preStop);
  if (ports && ports.length > 0) {
    result[names.ports] = JSON.stringify(
      ports.map(({ name, hostPort, containerPort, protocol, hostIP }) => ({
        name,
        hostPort,
        containerPort,
        protocol,
        hostIP,
      })),
    );
  }
  return result;
}

function podNames({ metadata }: Pod): Texts {
  return {
    [runtimeLabels.podName]: metadata.name,
    [runtimeLabels.podNamespace]: metadata.namespace,
    [runtimeLabels.podUid]: metadata.uid,
  };
}
