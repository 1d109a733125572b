/**
 * Who a container runs as and what it may do. A container's own settings win over the pod's; what neither
 * says is decided by the image, the node's configuration and the kubelet's defaults, in that order.
 */
import {
  type AppArmorProfile,
  appArmorFault,
  appArmorProfileOf,
} from '../../kubernetes/app-armor-profile.ts';
import type { Container, Pod, PodSpec } from '../../kubernetes/types.ts';
import {
  type Int64Value,
  type LinuxContainerSecurityContext,
  type LinuxSandboxSecurityContext,
  type NamespaceOption,
  type SELinuxOption,
  type SecurityProfile,
  SecurityProfile_ProfileType,
  SupplementalGroupsPolicy,
} from '../generated/cri.ts';
import { ContainerConfigError } from './container-config-error.ts';

/** The user an image is made to run as: a number, or a name only the image can resolve. */
export interface ImageUser {
  readonly uid?: bigint | undefined;
  readonly username?: string | undefined;
}

/** The node's part in a container's security. */
export interface NodeSecuritySettings {
  /** The kubelet's root directory; profiles with `type: Localhost` are below its `seccomp`. */
  readonly rootDirectory: string;
  /** `seccompDefault`: containers that name no profile get the runtime's. */
  readonly seccompDefault: boolean;
  /** Existing `/sys/devices/system/cpu/cpu<n>/thermal_throttle` directories, hidden from containers. */
  readonly thermalThrottlePaths: readonly string[];
}

const maskedPaths = [
  '/proc/asound',
  '/proc/acpi',
  '/proc/interrupts',
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/sched_debug',
  '/proc/scsi',
  '/sys/firmware',
  '/sys/devices/virtual/powercap',
];
const readonlyPaths = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'];

export interface SandboxSecurityInput {
  readonly spec: PodSpec;
  readonly namespaces: NamespaceOption;
  /** Groups that own the pod's volumes. */
  readonly volumeGids?: readonly number[] | undefined;
}

/** The security settings of a sandbox, from those of the pod. */
export function sandboxSecurityContext(input: SandboxSecurityInput): LinuxSandboxSecurityContext {
  const { spec, namespaces, volumeGids } = input;
  const pod = spec.securityContext;
  const everyone = [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])];
  return {
    namespaceOptions: namespaces,
    selinuxOptions: selinux(pod?.seLinuxOptions),
    runAsUser: int64(pod?.runAsUser),
    runAsGroup: int64(pod?.runAsGroup),
    readonlyRootfs: false,
    supplementalGroups: pod ? supplementalGroups(spec, volumeGids) : [],
    supplementalGroupsPolicy: groupsPolicy(spec),
    privileged: everyone.some((container) => container.securityContext?.privileged === true),
    seccomp: { profileType: SecurityProfile_ProfileType.RuntimeDefault, localhostRef: '' },
    seccompProfilePath: '',
    apparmor: undefined,
  };
}

export interface ContainerSecurityInput {
  readonly pod: Pod;
  readonly container: Container;
  readonly namespaces: NamespaceOption;
  readonly imageUser: ImageUser;
  readonly node: NodeSecuritySettings;
  readonly volumeGids?: readonly number[] | undefined;
}

/** Throws {@link ContainerConfigError} for profiles without a name and users that break `runAsNonRoot`. */
export function containerSecurityContext(input: ContainerSecurityInput): LinuxContainerSecurityContext {
  const { pod, container, namespaces, imageUser, node, volumeGids } = input;
  const { spec } = pod;
  checkNonRoot(pod, container, imageUser);
  const own = container.securityContext;
  const fromPod = spec.securityContext;
  const user = own?.runAsUser ?? fromPod?.runAsUser;
  const unmasked = own?.procMount === 'Unmasked';
  const apparmor = appArmorProfile(appArmorProfileOf(pod, container));
  return {
    capabilities: own?.capabilities && {
      addCapabilities: own.capabilities.add ?? [],
      dropCapabilities: own.capabilities.drop ?? [],
      addAmbientCapabilities: [],
    },
    privileged: own?.privileged ?? false,
    namespaceOptions: namespaces,
    selinuxOptions: selinux(own?.seLinuxOptions ?? fromPod?.seLinuxOptions),
    runAsUser: user === undefined ? wrapped(imageUid(imageUser)) : int64(user),
    runAsUsername: user === undefined ? (imageUser.username ?? '') : '',
    runAsGroup: int64(own?.runAsGroup ?? fromPod?.runAsGroup),
    readonlyRootfs: own?.readOnlyRootFilesystem ?? false,
    supplementalGroups: supplementalGroups(spec, volumeGids),
    supplementalGroupsPolicy: groupsPolicy(spec),
    noNewPrivs: own?.allowPrivilegeEscalation === false,
    maskedPaths: unmasked ? [] : [...maskedPaths, ...node.thermalThrottlePaths],
    readonlyPaths: unmasked ? [] : [...readonlyPaths],
    seccomp: seccompProfile(own?.seccompProfile ?? fromPod?.seccompProfile, node),
    seccompProfilePath: '',
    apparmor: apparmor?.profile,
    apparmorProfile: apparmor?.legacyName ?? '',
  };
}

/** An image that names nobody runs as root. */
function imageUid({ uid, username }: ImageUser): bigint | undefined {
  return uid ?? (username ? undefined : 0n);
}

/** Refuses a container that says it must not run as root and would, or might. */
function checkNonRoot(pod: Pod, container: Container, imageUser: ImageUser): void {
  const own = container.securityContext;
  const fromPod = pod.spec.securityContext;
  if (!(own?.runAsNonRoot ?? fromPod?.runAsNonRoot)) return;
  const { name, namespace, uid } = pod.metadata;
  const subject = `(pod: "${name}_${namespace}(${uid})", container: ${container.name})`;
  const user = own?.runAsUser ?? fromPod?.runAsUser;
  if (user === 0) throw new ContainerConfigError(`container's runAsUser breaks non-root policy ${subject}`);
  if (user !== undefined) return;
  const byImage = imageUid(imageUser);
  if (byImage === 0n) {
    throw new ContainerConfigError(`container has runAsNonRoot and image will run as root ${subject}`);
  }
  if (byImage === undefined) {
    throw new ContainerConfigError(
      `container has runAsNonRoot and image has non-numeric user (${imageUser.username}), cannot verify user is non-root ${subject}`,
    );
  }
}

interface ProfileField {
  readonly type: string;
  readonly localhostProfile?: string;
}

function seccompProfile(field: ProfileField | undefined, node: NodeSecuritySettings): SecurityProfile {
  const { RuntimeDefault, Unconfined, Localhost } = SecurityProfile_ProfileType;
  if (!field) return { profileType: node.seccompDefault ? RuntimeDefault : Unconfined, localhostRef: '' };
  if (field.type === 'RuntimeDefault') return { profileType: RuntimeDefault, localhostRef: '' };
  if (field.type !== 'Localhost') return { profileType: Unconfined, localhostRef: '' };
  if (!field.localhostProfile) {
    throw new ContainerConfigError('localhostProfile must be set if seccompProfile type is Localhost.');
  }
  return {
    profileType: Localhost,
    localhostRef: `${node.rootDirectory}/seccomp/${field.localhostProfile}`,
  };
}

/** The profile as newer runtimes read it, and as older ones do. */
function appArmorProfile(
  asked: AppArmorProfile | undefined,
): { profile: SecurityProfile; legacyName: string } | undefined {
  if (!asked) return undefined;
  const fault = appArmorFault(asked);
  if (fault !== undefined) throw new ContainerConfigError(fault);
  const { RuntimeDefault, Unconfined, Localhost } = SecurityProfile_ProfileType;
  switch (asked.type) {
    case 'RuntimeDefault':
      return { profile: { profileType: RuntimeDefault, localhostRef: '' }, legacyName: 'runtime/default' };
    case 'Unconfined':
      return { profile: { profileType: Unconfined, localhostRef: '' }, legacyName: 'unconfined' };
    default: {
      const name = asked.localhostProfile ?? '';
      return { profile: { profileType: Localhost, localhostRef: name }, legacyName: `localhost/${name}` };
    }
  }
}

function supplementalGroups(spec: PodSpec, volumeGids: readonly number[] = []): bigint[] {
  const pod = spec.securityContext;
  const fsGroup = pod?.fsGroup === undefined ? [] : [pod.fsGroup];
  return [...fsGroup, ...volumeGids, ...(pod?.supplementalGroups ?? [])].map(BigInt);
}

function groupsPolicy(spec: PodSpec): SupplementalGroupsPolicy {
  const isStrict = spec.securityContext?.supplementalGroupsPolicy === 'Strict';
  return isStrict ? SupplementalGroupsPolicy.Strict : SupplementalGroupsPolicy.Merge;
}

function selinux(options: Partial<SELinuxOption> | undefined): SELinuxOption | undefined {
  if (!options) return undefined;
  const { user = '', role = '', type = '', level = '' } = options;
  return { user, role, type, level };
}

function int64(value: number | undefined): Int64Value | undefined {
  return wrapped(value === undefined ? undefined : BigInt(value));
}

function wrapped(value: bigint | undefined): Int64Value | undefined {
  return value === undefined ? undefined : { value };
}
