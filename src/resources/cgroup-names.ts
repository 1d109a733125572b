/**
 * The names of the cgroups pods run in, for both cgroup drivers. Pure.
 *
 * A cgroup is thought of as a list of elements below the cgroup root (`kubepods`, `burstable`, `pod<uid>`);
 * the driver decides how that is spelled in the file system and to the runtime.
 */
import type { QosClass } from '../kubernetes/types.ts';

/** `cgroupDriver` of the KubeletConfiguration; must be the runtime's own. */
export type CgroupDriver = 'cgroupfs' | 'systemd';

/** The elements of one cgroup's name, outermost first, as cgroupfs spells them. */
export type CgroupElements = readonly string[];

const qosElement: Readonly<Record<QosClass, readonly string[]>> = {
  Guaranteed: [],
  Burstable: ['burstable'],
  BestEffort: ['besteffort'],
};

/** Classes whose pods stand in a cgroup of the class; Guaranteed pods stand directly below kubepods. */
export const qosClasses: readonly QosClass[] = ['Guaranteed', 'Burstable', 'BestEffort'];

/** The cgroup root (`cgroupRoot`, `/` by default) as elements. */
export function rootElements(cgroupRoot: string): CgroupElements {
  return cgroupRoot.split('/').filter(Boolean);
}

/** The cgroup of all pods. */
export function kubepodsElements(root: CgroupElements): CgroupElements {
  return [...root, 'kubepods'];
}

/** The cgroup of a QoS class; for Guaranteed the cgroup of all pods. */
export function qosElements(root: CgroupElements, qos: QosClass): CgroupElements {
  return [...kubepodsElements(root), ...qosElement[qos]];
}

/** The cgroup of one pod, below that of its QoS class. */
export function podElements(root: CgroupElements, qos: QosClass, uid: string): CgroupElements {
  return [...qosElements(root, qos), `pod${uid}`];
}

/**
 * The path of a cgroup in the hierarchy: `/kubepods/burstable/pod<uid>`, or with systemd
 * `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid with _ for ->.slice`.
 */
export function cgroupPath(driver: CgroupDriver, elements: CgroupElements): string {
  if (driver === 'cgroupfs') return `/${elements.join('/')}`;
  return `/${elements.map((_, index) => sliceName(elements.slice(0, index + 1))).join('/')}`;
}

/** The unit that systemd knows a cgroup by. In slice names a dash means depth, so dashes become `_`. */
export function sliceName(elements: CgroupElements): string {
  return `${elements.map((element) => element.replaceAll('-', '_')).join('-')}.slice`;
}

/** `cgroup_parent` of a sandbox: the full path, or with systemd the pod's slice alone. */
export function cgroupParent(driver: CgroupDriver, elements: CgroupElements): string {
  return driver === 'cgroupfs' ? cgroupPath(driver, elements) : sliceName(elements);
}

/**
 * `cgroup_parent` where nobody keeps a tree for pods (`cgroupsPerQOS: false`): the configured root itself, or
 * empty, which leaves the choice to the runtime.
 */
export function unmanagedCgroupParent(driver: CgroupDriver, cgroupRoot: string): string {
  const elements = rootElements(cgroupRoot);
  return elements.length === 0 ? '' : cgroupParent(driver, elements);
}

/**
 * The uid of the pod a cgroup belongs to, by the name of its directory below the cgroup of `qos`; undefined
 * when it is no pod's. The inverse of {@link podElements} for every uid without `_`.
 */
export function podUidOf(
  driver: CgroupDriver,
  root: CgroupElements,
  qos: QosClass,
  directory: string,
): string | undefined {
  if (driver === 'cgroupfs') return directory.startsWith('pod') ? directory.slice(3) || undefined : undefined;
  const prefix = `${sliceName(qosElements(root, qos)).slice(0, -'.slice'.length)}-pod`;
  if (!directory.startsWith(prefix) || !directory.endsWith('.slice')) return undefined;
  return directory.slice(prefix.length, -'.slice'.length).replaceAll('_', '-') || undefined;
}
