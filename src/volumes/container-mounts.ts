/**
 * What a container mounts: its `volumeMounts` against the volumes of the pod. Pure; sub-paths are named
 * here and resolved by `sub-paths.ts`.
 */
import { isAbsolute, join } from 'node:path';
import type { ContainerMount, MountPropagation } from '../kubernetes/container-mount.ts';
import { expandStrict, MissingValueError } from '../kubernetes/expansion.ts';
import type { VolumeMount } from '../kubernetes/types.ts';
import type { MountedVolume } from './volume-kind.ts';

/** A mount whose part of the volume has still to be found. */
export interface PlannedMount extends ContainerMount {
  readonly volume: string;
  /** Relative, without `..`; absent for the whole volume. */
  readonly subPath?: string;
  /** The mount's place in `volumeMounts`. */
  readonly index: number;
}

export interface ContainerMountsRequest {
  readonly container: { readonly name: string; readonly volumeMounts?: readonly VolumeMount[] };
  readonly volumes: readonly MountedVolume[];
  /** The environment of the container, for `subPathExpr`. */
  readonly lookup: (variable: string) => string | undefined;
  /** The runtime handler can make a mount and all below it read-only. */
  readonly recursiveReadOnlySupported: boolean;
  /** What the runtime knows the image of an image volume by; throws where there is none to mount. */
  readonly imageReference: (volume: string) => string;
  /** Whether files of this volume are to be labelled for SELinux now. */
  readonly relabel: (volume: MountedVolume) => boolean;
}

/** A mount of a container cannot be made; the container's reason is `CreateContainerConfigError`. */
export class ContainerMountError extends Error {
  override readonly name = 'ContainerMountError';
}

const propagations: readonly string[] = ['None', 'HostToContainer', 'Bidirectional'];

/** The mounts of a container in the order of its spec. Throws {@link ContainerMountError}. */
export function planContainerMounts(request: ContainerMountsRequest): PlannedMount[] {
  const volumes = new Map(request.volumes.map((volume) => [volume.name, volume]));
  return (request.container.volumeMounts ?? []).map((mount, index) => {
    const volume = volumes.get(mount.name);
    if (volume === undefined) {
      throw new ContainerMountError(
        `cannot find volume "${mount.name}" to mount into container "${request.container.name}"`,
      );
    }
    const subPath = subPathOf(mount, request);
    const readOnly = volume.readOnly || mount.readOnly === true;
    return {
      volume: volume.name,
      index,
      containerPath: isAbsolute(mount.mountPath) ? mount.mountPath : join('/', mount.mountPath),
      hostPath: volume.hostPath,
      readOnly,
      recursiveReadOnly: isRecursivelyReadOnly(mount, request),
      propagation: propagationOf(mount, request.container.name),
      selinuxRelabel: volume.relabels && request.relabel(volume),
      ...(volume.kind === 'image'
        ? { image: { reference: request.imageReference(volume.name), subPath } }
        : subPath === ''
          ? {}
          : { subPath }),
    };
  });
}

function propagationOf(mount: VolumeMount, container: string): MountPropagation {
  const propagation = mount.mountPropagation ?? 'None';
  if (propagations.includes(propagation)) return propagation as MountPropagation;
  throw new ContainerMountError(
    `invalid mount propagation "${mount.mountPropagation}" of volume "${mount.name}" in container "${container}"`,
  );
}

function isRecursivelyReadOnly(mount: VolumeMount, request: ContainerMountsRequest): boolean {
  const wish = mount.recursiveReadOnly ?? 'Disabled';
  if (wish === 'Disabled') return false;
  const propagates = mount.mountPropagation !== undefined && mount.mountPropagation !== 'None';
  const obstacle =
    mount.readOnly !== true
      ? 'the mount is not read-only'
      : propagates
        ? `its mountPropagation is ${mount.mountPropagation}`
        : request.recursiveReadOnlySupported
          ? undefined
          : 'the container runtime does not support it';
  if (obstacle === undefined) return true;
  if (wish === 'IfPossible') return false;
  throw new ContainerMountError(
    `volume "${mount.name}" cannot be mounted recursively read-only in container "${request.container.name}": ${obstacle}`,
  );
}

function subPathOf(mount: VolumeMount, request: ContainerMountsRequest): string {
  let subPath = mount.subPath ?? '';
  if (mount.subPathExpr) {
    try {
      subPath = expandStrict(mount.subPathExpr, request.lookup);
    } catch (cause) {
      if (!(cause instanceof MissingValueError)) throw cause;
      throw new ContainerMountError(
        `cannot expand subPathExpr "${mount.subPathExpr}" of volume "${mount.name}": ${cause.message}`,
        { cause },
      );
    }
  }
  if (isAbsolute(subPath)) {
    throw new ContainerMountError(
      `subPath "${subPath}" of volume "${mount.name}" must not be an absolute path`,
    );
  }
  const elements = subPath.split('/').filter((element) => element !== '' && element !== '.');
  if (elements.includes('..')) {
    throw new ContainerMountError(`subPath "${subPath}" of volume "${mount.name}" must not contain '..'`);
  }
  return elements.join('/');
}
