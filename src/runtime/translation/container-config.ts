/**
 * One container of a pod as the runtime wants it (CRI `ContainerConfig`). Everything it needs to know
 * comes in as plain values; nothing is looked up here.
 */
import { Buffer } from 'node:buffer';
import type { ContainerMount } from '../../kubernetes/container-mount.ts';
import { expandAll } from '../../kubernetes/expansion.ts';
import type { Container, Pod } from '../../kubernetes/types.ts';
import { type ContainerConfig, Signal } from '../generated/cri.ts';
import { containerAnnotations, containerLabels } from './annotations.ts';
import { type CpuAssignment, containerResources, type NodeResourceSettings } from './linux-resources.ts';
import { type ContainerDevice, imageSpec, runtimeDevice, runtimeMount } from './mounts.ts';
import { containerNamespaces, idMappings, type UserNamespaceRange } from './namespaces.ts';
import { containerSecurityContext, type ImageUser, type NodeSecuritySettings } from './security-context.ts';

/** What device plugins and DRA drivers add to a container. */
export interface ContainerAdditions {
  readonly environment?: readonly (readonly [name: string, value: string])[] | undefined;
  readonly mounts?: readonly ContainerMount[] | undefined;
  readonly devices?: readonly ContainerDevice[] | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  /** Fully qualified CDI device names. */
  readonly cdiDevices?: readonly string[] | undefined;
}

export interface ContainerConfigInput {
  readonly pod: Pod;
  readonly container: Container;
  /** How often the container was restarted; also the attempt and the name of the log file. */
  readonly restartCount: number;
  /** What the runtime calls the image, from the pull or the look-up. */
  readonly imageRef: string;
  readonly imageUser: ImageUser;
  readonly environment: ReadonlyMap<string, string>;
  /** In mounting order. */
  readonly mounts: readonly ContainerMount[];
  /** Raw block volumes. */
  readonly devices?: readonly ContainerDevice[] | undefined;
  readonly additions?: ContainerAdditions | undefined;
  /** The agent's own notes on the container. */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  readonly resources: NodeResourceSettings;
  readonly assignment?: CpuAssignment | undefined;
  readonly security: NodeSecuritySettings;
  readonly volumeGids?: readonly number[] | undefined;
  readonly userNamespace?: UserNamespaceRange | undefined;
  /** Runtime id of the container whose processes an ephemeral container joins. */
  readonly targetId?: string | undefined;
  /** Honour `lifecycle.stopSignal` (feature gate ContainerStopSignals). */
  readonly stopSignals?: boolean | undefined;
}

/** Throws `ContainerConfigError` when the pod asks for what cannot be made. */
export function containerConfig(input: ContainerConfigInput): ContainerConfig {
  const { pod, container, restartCount, environment, additions, userNamespace } = input;
  const mappings = idMappings(pod.spec, userNamespace);
  const added = additions?.environment ?? [];
  const addedValues = new Map(added);
  const lookup = (name: string) => environment.get(name) ?? addedValues.get(name);
  return {
    metadata: { name: container.name, attempt: restartCount },
    image: imageSpec(input.imageRef, container.image),
    command: expandAll(container.command, lookup),
    args: expandAll(container.args, lookup),
    workingDir: container.workingDir ?? '',
    envs: [...environment, ...added].map(([key, value]) => ({ key, value: Buffer.from(value) })),
    mounts: [...input.mounts, ...(additions?.mounts ?? [])].map((mount) => runtimeMount(mount, mappings)),
    devices: [...(additions?.devices ?? []), ...(input.devices ?? [])].map(runtimeDevice),
    cdiDevices: (additions?.cdiDevices ?? []).map((name) => ({ name })),
    labels: containerLabels(pod, container),
    annotations: containerAnnotations({
      pod,
      container,
      restartCount,
      extra: { ...additions?.annotations, ...input.annotations },
    }),
    logPath: `${container.name}/${restartCount}.log`,
    stdin: container.stdin ?? false,
    stdinOnce: container.stdinOnce ?? false,
    tty: container.tty ?? false,
    stopSignal: input.stopSignals ? stopSignalOf(container) : Signal.RUNTIME_DEFAULT,
    linux: {
      resources: containerResources({
        pod,
        container,
        node: input.resources,
        assignment: input.assignment,
      }),
      securityContext: containerSecurityContext({
        pod,
        container,
        namespaces: containerNamespaces(pod.spec, { range: userNamespace, targetId: input.targetId }),
        imageUser: input.imageUser,
        node: input.security,
        volumeGids: input.volumeGids,
      }),
    },
  };
}

function stopSignalOf({ lifecycle }: Container): Signal {
  const name = lifecycle?.stopSignal ?? '';
  const signals: Readonly<Record<string, Signal>> = Signal;
  return Object.hasOwn(signals, name) ? (signals[name] ?? Signal.RUNTIME_DEFAULT) : Signal.RUNTIME_DEFAULT;
}
