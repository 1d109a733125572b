/**
 * The cgroups pods run in: one for all pods, one for each QoS class below it, one for each pod. Makes them,
 * keeps their limits, removes them, and never touches a cgroup outside of its own tree.
 *
 * With the cgroupfs driver the directories are made here. With the systemd driver systemd makes them as
 * transient slices where it runs; what it does not make (v1 controllers it leaves out, or everything in a
 * container without systemd) is made here under the same names. Limits are written to the files in both
 * cases, and told to systemd as well, which would otherwise reset them.
 */
import type { ResourceAmounts } from '../kubernetes/pod-resources.ts';
import { podQosClass } from '../kubernetes/qos.ts';
import type { Pod, QosClass } from '../kubernetes/types.ts';
import type { CgroupHierarchy } from '../linux/cgroupfs.ts';
import type { SystemdSlices } from '../linux/systemd-slices.ts';
import type { Logger } from '../telemetry/logger.ts';
import {
  type CgroupDriver,
  type CgroupElements,
  cgroupParent,
  cgroupPath,
  kubepodsElements,
  podElements,
  podUidOf,
  qosClasses,
  qosElements,
  rootElements,
  sliceName,
} from './cgroup-names.ts';
import { type CgroupValues, cgroupSettings, sliceProperties } from './cgroup-values.ts';
import {
  kubepodsCgroupValues,
  type PodCgroupOptions,
  type ProtectedMemory,
  podCgroupValues,
  protectedMemory,
  qosCgroupValues,
} from './pod-cgroup-values.ts';

export interface PodCgroupsOptions {
  readonly hierarchy: CgroupHierarchy;
  readonly driver: CgroupDriver;
  /** `cgroupRoot`; `/` and the empty string are the root of the hierarchy. */
  readonly cgroupRoot: string;
  /** Present where systemd runs and is the driver. */
  readonly systemd?: SystemdSlices;
  readonly pod: PodCgroupOptions;
  /** What all pods together may use, and whether that is enforced (`enforceNodeAllocatable: [pods]`). */
  readonly share: ResourceAmounts;
  readonly enforced: boolean;
  readonly pidsMax?: number;
  /** Told what is kept for pods, each time that pods are counted. */
  readonly onProtected?: (memory: ProtectedMemory) => void;
  readonly logger: Logger;
}

/** The cgroup of a pod that the node has. */
export interface ExistingPodCgroup {
  readonly uid: string;
  readonly qos: QosClass;
}

interface CgroupTarget {
  /** For messages: `pod default/web (<uid>)`. */
  readonly whose: string;
  readonly elements: CgroupElements;
  readonly values: CgroupValues;
  /** Names values that are set apart from the others of the same cgroup. */
  readonly part?: string;
}

type QosPods = readonly Pick<Pod, 'spec'>[];

/** The cgroup of a pod, a class or all pods could not be made or limited. */
export class PodCgroupError extends Error {
  override readonly name = 'PodCgroupError';
  constructor(whose: string, cgroup: string, cause: unknown) {
    super(`The cgroup of ${whose} (${cgroup}) could not be set up: ${(cause as Error).message}`, { cause });
  }
}

/** The tree below one cgroup root; the only writer in it beside the runtime. */
export class PodCgroups {
  readonly #options: PodCgroupsOptions;
  readonly #root: CgroupElements;
  /** What was last written, so that a class is touched only when its values change. */
  readonly #written = new Map<string, string>();
  readonly #reportedSkipped = new Set<string>();

  constructor(options: PodCgroupsOptions) {
    this.#options = options;
    this.#root = rootElements(options.cgroupRoot);
  }

  /** Makes and limits the cgroups of all pods and of the QoS classes. */
  async ensureRoot(signal?: AbortSignal): Promise<void> {
    const { share, enforced, pidsMax, pod } = this.#options;
    const values = kubepodsCgroupValues(share, {
      enforced,
      ...(pidsMax === undefined ? {} : { pidsMax }),
      hugePageSizes: pod.hugePageSizes,
    });
    await this.#ensure({ whose: 'all pods', elements: kubepodsElements(this.#root), values }, signal);
    await this.updateQos([], signal);
  }

  /** `cgroup_parent` for the sandbox of a pod. */
  parentOf(pod: Pod): string {
    return cgroupParent(this.#options.driver, this.#elementsOf(pod));
  }

  /** The path of the pod's cgroup in the hierarchy, for reading its statistics. */
  pathOf(pod: Pod): string {
    return cgroupPath(this.#options.driver, this.#elementsOf(pod));
  }

  /** The paths of the cgroup of all pods and of those of the QoS classes. */
  classPaths(): Readonly<Record<'pods' | 'burstable' | 'besteffort', string>> {
    const path = (qos: QosClass) => cgroupPath(this.#options.driver, qosElements(this.#root, qos));
    return { pods: path('Guaranteed'), burstable: path('Burstable'), besteffort: path('BestEffort') };
  }

  /** Makes the pod's cgroup and sets its limits. */
  async ensurePod(pod: Pod, signal?: AbortSignal): Promise<void> {
    const { namespace, name, uid } = pod.metadata;
    const values = podCgroupValues(pod.spec, this.#options.pod);
    const whose = `pod ${namespace}/${name} (${uid})`;
    await this.#ensure({ whose, elements: this.#elementsOf(pod), values }, signal);
  }

  /**
   * Sets the CPU shares of the QoS classes and the memory kept for them, for the pods that are to run. Writes
   * only what changed; protection that an earlier agent left is taken back.
   */
  async updateQos(pods: QosPods, signal?: AbortSignal): Promise<void> {
    const { pod, onProtected } = this.#options;
    const shares = qosCgroupValues(pods, pod.hugePageSizes);
    const memory = protectedMemory(pods, pod.protectMemory ?? false);
    onProtected?.(memory);
    const kubepods = kubepodsElements(this.#root);
    const classes = [
      { whose: 'all pods', elements: kubepods, values: memory, part: 'memory' },
      {
        whose: 'Burstable pods',
        elements: qosElements(this.#root, 'Burstable'),
        values: { ...shares.Burstable, memoryLow: memory.memoryLow },
      },
      {
        whose: 'BestEffort pods',
        elements: qosElements(this.#root, 'BestEffort'),
        values: shares.BestEffort,
      },
    ];
    for (const each of classes) await this.#ensure(each, signal);
  }

  /**
   * Kills what still runs in the pod's cgroup and removes it. Done when there is none. Without `qos` every
   * class is looked through.
   */
  async removePod(uid: string, options: { qos?: QosClass; signal?: AbortSignal } = {}): Promise<void> {
    const { driver, systemd, hierarchy } = this.#options;
    const signal = options.signal === undefined ? {} : { signal: options.signal };
    for (const qos of options.qos === undefined ? qosClasses : [options.qos]) {
      const elements = podElements(this.#root, qos, uid);
      if (driver === 'systemd' && systemd) {
        const siblings = await hierarchy.children(cgroupPath(driver, elements.slice(0, -1)));
        const slice = sliceName(elements);
        if (siblings.includes(slice)) await systemd.stop(slice, options.signal);
      }
      await hierarchy.remove(cgroupPath(driver, elements), signal);
    }
  }

  /** The pods that have a cgroup, of every class. */
  async existing(): Promise<ExistingPodCgroup[]> {
    const { driver, hierarchy } = this.#options;
    const found: ExistingPodCgroup[] = [];
    for (const qos of qosClasses) {
      const parent = cgroupPath(driver, qosElements(this.#root, qos));
      for (const directory of await hierarchy.children(parent)) {
        const uid = podUidOf(driver, this.#root, qos, directory);
        if (uid !== undefined) found.push({ uid, qos });
      }
    }
    return found;
  }

  #elementsOf(pod: Pod): CgroupElements {
    return podElements(this.#root, podQosClass(pod.spec), pod.metadata.uid);
  }

  async #ensure(
    { whose, elements, values, part = '' }: CgroupTarget,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { driver, systemd, hierarchy, logger } = this.#options;
    const path = cgroupPath(driver, elements);
    const settings = cgroupSettings(hierarchy.version, values);
    const fingerprint = JSON.stringify(settings);
    const name = `${path}#${part}`;
    if (part !== '' && settings.length === 0) return;
    // Pods come and go, and a cgroup made anew under an old name is empty; only the few above are remembered.
    const isClass = elements.length <= this.#root.length + 2 && !elements.at(-1)!.startsWith('pod');
    if (isClass && this.#written.get(name) === fingerprint && (await hierarchy.exists(path))) return;
    try {
      signal?.throwIfAborted();
      if (driver === 'systemd' && systemd) {
        await systemd.ensure(sliceName(elements), sliceProperties(hierarchy.version, values), signal);
      }
      await hierarchy.create(path);
      const skipped = (await hierarchy.write(path, settings)).filter(
        (file) => !this.#reportedSkipped.has(file),
      );
      for (const file of skipped) this.#reportedSkipped.add(file);
      if (skipped.length > 0) {
        logger.warn('This machine cannot limit some resources of pods', { cgroup: path, missing: skipped });
      }
      if (isClass) this.#written.set(name, fingerprint);
    } catch (cause) {
      if (signal?.aborted) throw cause;
      throw new PodCgroupError(whose, path, cause);
    }
  }
}
