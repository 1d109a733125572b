/**
 * The volumes of pods: set up before their containers start, taken down after the last one has ended.
 *
 * Everything can be run again after a crash at any line. Taking down needs no pod spec: the directories and
 * the mount table say what is there. Nothing is deleted while anything is mounted below the pod's directory,
 * and nothing outside of that directory is ever touched.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Limiter } from '../concurrency/limiter.ts';
import type { ContainerMount } from '../kubernetes/container-mount.ts';
import { podContainers } from '../kubernetes/init-containers.ts';
import type { Pod, PodSpec, Volume, VolumeMount } from '../kubernetes/types.ts';
import { namesIn } from '../linux/directory-names.ts';
import { unmountAtOrBelow } from '../linux/mounts.ts';
import { removeTree } from '../linux/remove-tree.ts';
import { planContainerMounts } from './container-mounts.ts';
import { emptyDirPlugin } from './empty-dir.ts';
import type { MeasuredPod } from './local-storage.ts';
import {
  podDirectory,
  podsDirectory,
  subPathTarget,
  volumeDirectory,
  volumeDirectoryNames,
} from './pod-volume-paths.ts';
import { Refreshes } from './refreshes.ts';
import { refreshSubPath, wantsSubPathRefresh } from './sub-path-refresh.ts';
import { bindSubPath } from './sub-paths.ts';
import { readVolumeFile } from './volume-file.ts';
import type { MountedVolume } from './volume-kind.ts';
import { refreshableVolume, setUpVolume, type VolumeKinds, volumeSourceName } from './volume-kinds.ts';
import type { VolumeMetrics } from './volume-metrics.ts';

/** Some volumes of a pod are not set up. `message` is that of the `FailedMount` event. */
export class PodVolumesError extends AggregateError {
  override readonly name = 'PodVolumesError';
  /** The volumes that are not there, with the reason of each. */
  readonly failures: readonly { volume: string; error: Error }[];

  constructor(failures: readonly { volume: string; error: Error }[]) {
    const reasons = failures.map(
      ({ volume, error }) => `MountVolume.SetUp failed for volume "${volume}" : ${error.message}`,
    );
    super(
      failures.map(({ error }) => error),
      reasons.join('; '),
    );
    this.failures = failures;
  }
}

export interface ContainerMountsOptions {
  readonly pod: Pod;
  readonly container: { readonly name: string; readonly volumeMounts?: readonly VolumeMount[] };
  /** What {@link PodVolumes.setUp} gave for the pod. */
  readonly volumes: readonly MountedVolume[];
  /** The environment of the container, for `subPathExpr`. */
  readonly lookup: (variable: string) => string | undefined;
  readonly recursiveReadOnlySupported: boolean;
  /** What the runtime knows the image of an image volume by; throws where there is none to mount. */
  readonly imageReference: (volume: string) => string;
  readonly selinuxEnabled: boolean;
}

/** Pods whose files are brought up to date side by side; more only wait for each other in the kernel. */
const refreshesAtOnce = 8;

export class PodVolumes {
  readonly #root: string;
  readonly #kinds: VolumeKinds;
  readonly #metrics: VolumeMetrics | undefined;
  /** Volumes labelled for SELinux, by pod: the label of the first container counts. */
  readonly #labelled = new Map<string, Set<string>>();
  /** By pod: the volumes that are being set up. */
  readonly #unfinished = new Map<string, ReadonlySet<string>>();
  /** Pods whose volumes are all set up, by uid. */
  readonly #mounted = new Map<string, MeasuredPod>();
  readonly #refreshes = new Refreshes({
    limiter: new Limiter(refreshesAtOnce),
    refresh: (pod, signal) => this.#refresh(pod, signal),
  });

  /** `rootDirectory` is the kubelet's (`/var/lib/kubelet`). */
  constructor(options: { rootDirectory: string; kinds: VolumeKinds; metrics?: VolumeMetrics }) {
    this.#root = options.rootDirectory;
    this.#metrics = options.metrics;
    this.#kinds = options.kinds;
  }

  /**
   * Sets up every volume that a container of the pod uses, side by side. Settles when no set-up goes on any
   * more; throws {@link PodVolumesError} with all failures, or the signal's reason when aborted.
   */
  async setUp(pod: Pod, signal: AbortSignal): Promise<MountedVolume[]> {
    const { uid } = pod.metadata;
    return await this.#refreshes.after(uid, () => this.#setUp(pod, signal));
  }

  async #setUp(pod: Pod, signal: AbortSignal): Promise<MountedVolume[]> {
    signal.throwIfAborted();
    const directory = podDirectory(this.#root, pod.metadata.uid);
    await mkdir(directory, { recursive: true, mode: 0o750 });
    const volumes = usedVolumes(pod.spec);
    const place = { pod, podDirectory: directory };
    const unfinished = new Set(volumes.map(({ name }) => name));
    this.#unfinished.set(pod.metadata.uid, unfinished);
    const outcomes = await Promise.allSettled(
      volumes.map(async (volume) => {
        const setUp = setUpVolume(this.#kinds, volume, place, signal);
        const mounted = await (this.#metrics?.mount(volumeSourceName(volume), setUp) ?? setUp);
        unfinished.delete(volume.name);
        return mounted;
      }),
    );
    this.#unfinished.delete(pod.metadata.uid);
    signal.throwIfAborted();
    const mounted: MountedVolume[] = [];
    const failures: { volume: string; error: Error }[] = [];
    outcomes.forEach((outcome, index) => {
      if (outcome.status === 'fulfilled') mounted.push(outcome.value);
      else failures.push({ volume: volumes[index]!.name, error: asError(outcome.reason) });
    });
    if (failures.length > 0) throw new PodVolumesError(failures);
    this.#mounted.set(pod.metadata.uid, { pod, volumes: mounted });
    return mounted;
  }

  /** Names of the volumes that the set-up of the pod under way has not finished. */
  unfinished(podUid: string): readonly string[] {
    return [...(this.#unfinished.get(podUid) ?? [])];
  }

  /** The pods whose volumes are all set up now. */
  mounted(): Iterable<MeasuredPod> {
    return this.#mounted.values();
  }

  /**
   * Brings the files of the pod's configMap, secret, downwardAPI and projected volumes up to date, those that
   * have been set up. Any number of calls while one runs make one more run. Throws {@link PodVolumesError};
   * what could not be brought up to date is as it was.
   */
  async refresh(pod: Pod): Promise<void> {
    await this.#refreshes.request(pod);
  }

  async #refresh(pod: Pod, signal: AbortSignal): Promise<void> {
    const place = { pod, podDirectory: podDirectory(this.#root, pod.metadata.uid) };
    const failures: { volume: string; error: Error }[] = [];
    await Promise.all(
      usedVolumes(pod.spec).map(async (volume) => {
        try {
          await refreshableVolume(this.#kinds, volume, place)?.refresh(signal);
        } catch (error) {
          failures.push({ volume: volume.name, error: asError(error) });
        }
      }),
    );
    signal.throwIfAborted();
    if (wantsSubPathRefresh(pod)) await this.#refreshSubPaths(place, failures);
    if (failures.length > 0) throw new PodVolumesError(failures);
  }

  async #refreshSubPaths(
    { pod, podDirectory: directory }: { pod: Pod; podDirectory: string },
    failures: { volume: string; error: Error }[],
  ): Promise<void> {
    const refreshable = new Map(
      usedVolumes(pod.spec).flatMap((volume) => {
        const found = refreshableVolume(this.#kinds, volume, { pod, podDirectory: directory });
        return found ? [[volume.name, volumeDirectory(directory, found.plugin, volume.name)] as const] : [];
      }),
    );
    for (const { container } of podContainers(pod.spec)) {
      for (const [index, { name, subPath }] of (container.volumeMounts ?? []).entries()) {
        const volumePath = refreshable.get(name);
        if (volumePath === undefined || !subPath) continue;
        const target = subPathTarget(directory, name, container.name, index);
        try {
          await refreshSubPath({ volumePath, subPath, target });
        } catch (error) {
          failures.push({ volume: name, error: asError(error) });
        }
      }
    }
  }

  /**
   * The text of a file in an emptyDir volume of the pod; `undefined` when there is none. Throws
   * `VolumeFileError` when it is no regular file, is too large, or its path leads out of the volume.
   */
  async readFile(pod: Pod, volume: string, path: string): Promise<string | undefined> {
    const directory = podDirectory(this.#root, pod.metadata.uid);
    return await readVolumeFile(volumeDirectory(directory, emptyDirPlugin, volume), path);
  }

  /**
   * The mounts of a container, sub-paths bound and ready. Throws `ContainerMountError`, whose message is fit
   * for the container's status.
   */
  async containerMounts(options: ContainerMountsOptions, signal: AbortSignal): Promise<ContainerMount[]> {
    const { pod, container, selinuxEnabled } = options;
    const { uid } = pod.metadata;
    const labelled = this.#labelled.get(uid) ?? new Set<string>();
    const planned = planContainerMounts({
      ...options,
      relabel: (volume) => selinuxEnabled && !labelled.has(volume.name),
    });
    const mounts: ContainerMount[] = [];
    for (const { volume, subPath, index, ...mount } of planned) {
      signal.throwIfAborted();
      if (subPath === undefined) {
        mounts.push(mount);
        continue;
      }
      const target = subPathTarget(podDirectory(this.#root, uid), volume, container.name, index);
      await bindSubPath({
        volumePath: mount.hostPath,
        subPath,
        target,
        mountName: volume,
        container: container.name,
      });
      mounts.push({ ...mount, hostPath: target });
    }
    for (const { volume, selinuxRelabel } of planned) if (selinuxRelabel) labelled.add(volume);
    if (labelled.size > 0) this.#labelled.set(uid, labelled);
    return mounts;
  }

  /**
   * Unmounts and removes all volumes of a pod, known or not. Throws `StillMountedError` or
   * `TreeRemovalError`, which name what stayed; running it again continues.
   */
  async tearDown(uid: string, signal: AbortSignal): Promise<void> {
    await this.#refreshes.without(uid, () => this.#tearDown(uid, signal));
  }

  async #tearDown(uid: string, signal: AbortSignal): Promise<void> {
    const directory = podDirectory(this.#root, uid);
    this.#labelled.delete(uid);
    this.#mounted.delete(uid);
    // Everything is unmounted before anything is deleted: a volume may hold a mount of another one.
    await unmountAtOrBelow(directory, signal);
    for (const name of volumeDirectoryNames) await removeTree(join(directory, name), signal);
  }

  /** The uids of pods that have volumes, or what is left of volumes, on disk. */
  async podsWithVolumes(): Promise<string[]> {
    const uids: string[] = [];
    for (const uid of await namesIn(podsDirectory(this.#root))) {
      const present = await namesIn(join(podsDirectory(this.#root), uid));
      if (volumeDirectoryNames.some((name) => present.includes(name))) uids.push(uid);
    }
    return uids;
  }
}

/** The volumes of the pod that some container mounts; the others are not set up. */
export function usedVolumes(spec: PodSpec): Volume[] {
  const used = new Set<string>();
  for (const { container } of podContainers(spec)) {
    for (const { name } of container.volumeMounts ?? []) used.add(name);
    for (const { name } of container.volumeDevices ?? []) used.add(name);
  }
  return (spec.volumes ?? []).filter(({ name }) => used.has(name));
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
