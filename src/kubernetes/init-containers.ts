/**
 * Walking the containers of a pod: every kind in one order, with the field path that events name them by.
 */
import type { Container, EphemeralContainer, PodSpec } from './types.ts';

/**
 * What a container is to its pod. A sidecar is an init container with `restartPolicy: Always`: it starts in
 * the order of the init containers and runs beside the regular ones.
 */
export type ContainerKind = 'init' | 'sidecar' | 'regular' | 'ephemeral';

export interface ContainerPlace {
  readonly container: Container | EphemeralContainer;
  readonly kind: ContainerKind;
  /** For example `spec.initContainers{setup}`. */
  readonly fieldPath: string;
}

/** True for a sidecar; ask it only about members of `spec.initContainers`. */
export function isRestartableInit(container: Pick<Container, 'restartPolicy'>): boolean {
  return container.restartPolicy === 'Always';
}

/** Init containers, then regular ones, then ephemeral ones, each in the order of the spec. */
export function* podContainers(spec: PodSpec): Generator<ContainerPlace, void, undefined> {
  for (const container of spec.initContainers ?? []) {
    const kind = isRestartableInit(container) ? 'sidecar' : 'init';
    yield { container, kind, fieldPath: `spec.initContainers{${container.name}}` };
  }
  for (const container of spec.containers) {
    yield { container, kind: 'regular', fieldPath: `spec.containers{${container.name}}` };
  }
  for (const container of spec.ephemeralContainers ?? []) {
    yield { container, kind: 'ephemeral', fieldPath: `spec.ephemeralContainers{${container.name}}` };
  }
}

/** The container of that name, of whatever kind. Names are unique in a pod. */
export function findContainer(spec: PodSpec, name: string): ContainerPlace | undefined {
  for (const place of podContainers(spec)) if (place.container.name === name) return place;
  return undefined;
}

/** The field path of a container by name, as events use it; `undefined` when the pod has none such. */
export function containerFieldPath(spec: PodSpec, name: string): string | undefined {
  return findContainer(spec, name)?.fieldPath;
}
