/**
 * Mounts and devices of a container as the runtime wants them.
 */
import type { ContainerMount } from '../../kubernetes/container-mount.ts';
import type { Container, PodSpec } from '../../kubernetes/types.ts';
import {
  type Device,
  type IDMapping,
  type ImageSpec,
  type Mount,
  MountPropagation,
} from '../generated/cri.ts';

/** A device, by a device plugin or a raw block volume. */
export interface ContainerDevice {
  readonly hostPath: string;
  readonly containerPath: string;
  /** `r`, `w`, `m` in any order, for example `mrw`. */
  readonly permissions: string;
}

/** `mappings` are those of the pod's user namespace, empty on the node's. */
export function runtimeMount(mount: ContainerMount, mappings: readonly IDMapping[]): Mount {
  const { containerPath, image } = mount;
  return {
    containerPath: containerPath.startsWith('/') ? containerPath : `/${containerPath}`,
    hostPath: mount.hostPath,
    readonly: mount.readOnly ?? false,
    recursiveReadOnly: mount.recursiveReadOnly ?? false,
    selinuxRelabel: mount.selinuxRelabel ?? false,
    propagation: propagationOf(mount.propagation),
    uidMappings: [...mappings],
    gidMappings: [...mappings],
    image: image && imageSpec(image.reference),
    imageSubPath: image?.subPath ?? '',
  };
}

/** The device in the words of CRI. */
export function runtimeDevice({ hostPath, containerPath, permissions }: ContainerDevice): Device {
  return { hostPath, containerPath, permissions };
}

/** A reference to an image, with what the pod calls it. */
export function imageSpec(image: string, userSpecifiedImage = ''): ImageSpec {
  return { image, userSpecifiedImage, annotations: {}, runtimeHandler: '', imageRef: '' };
}

/**
 * True when the agent gives the container a hosts file of its own: the pod has addresses or the node's
 * network, and no volume is mounted there.
 */
export function needsEtcHosts(
  spec: PodSpec,
  container: Pick<Container, 'volumeMounts'>,
  podIps: readonly string[],
): boolean {
  const isTaken = (container.volumeMounts ?? []).some(({ mountPath }) => mountPath === '/etc/hosts');
  return !isTaken && (spec.hostNetwork === true || podIps.length > 0);
}

/** The pod's hosts file. */
export function etcHostsMount(hostPath: string, selinuxEnabled: boolean): ContainerMount {
  return { containerPath: '/etc/hosts', hostPath, selinuxRelabel: selinuxEnabled };
}

/** The file the container leaves its last words in; `undefined` when it has no path for it. */
export function terminationLogMount(
  container: Pick<Container, 'terminationMessagePath'>,
  hostPath: string,
  selinuxEnabled: boolean,
): ContainerMount | undefined {
  const containerPath = container.terminationMessagePath;
  return containerPath ? { containerPath, hostPath, selinuxRelabel: selinuxEnabled } : undefined;
}

function propagationOf(mode: ContainerMount['propagation']): MountPropagation {
  switch (mode) {
    case 'HostToContainer':
      return MountPropagation.PROPAGATION_HOST_TO_CONTAINER;
    case 'Bidirectional':
      return MountPropagation.PROPAGATION_BIDIRECTIONAL;
    default:
      return MountPropagation.PROPAGATION_PRIVATE;
  }
}
