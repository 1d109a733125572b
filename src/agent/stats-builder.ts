/** Builds what measures the node and its pods, and the endpoints that tell of it. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod } from '../kubernetes/types.ts';
import { CgroupUsageReader } from '../linux/cgroup-usage/cgroup-usage-reader.ts';
import type { CgroupHierarchy } from '../linux/cgroupfs.ts';
import { parseProcessorTopology } from '../linux/processor-topology.ts';
import { type MachineIdentityOptions, readMachineIdentity } from '../node/machine-identity.ts';
import type { PodWorkers } from '../pods/pod-workers.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';
import type { FilesystemUsage } from '../runtime/generated/cri.ts';
import type { ObservedPod } from '../runtime/observed-pod.ts';
import type { RuntimeObserver } from '../runtime/runtime-observer.ts';
import type { MachineDescription } from '../stats/cadvisor-metrics.ts';
import { DiskUsage, type RuntimeDisk, type RuntimeDisks } from '../stats/disk-usage.ts';
import type { MeasuredContainer, MeasuredPod } from '../stats/measured-pod.ts';
import { NodeSampler } from '../stats/node-sampler.ts';
import { agesFor, NodeStats } from '../stats/node-stats.ts';
import type { MeasuredVolume, VolumeSource } from '../stats/volume-source.ts';
import type { LocalStorage } from '../volumes/local-storage.ts';
import type { NodeAgentOptions } from './agent-context.ts';
import type { MachineFacts } from './node-facts.ts';
import type { BuiltPodServices } from './pod-services-builder.ts';
import { SystemCgroups } from './system-cgroups.ts';

export interface StatsRooms {
  readonly hierarchy: CgroupHierarchy;
  readonly facts: MachineFacts;
  readonly nodeName: string;
  readonly built: BuiltPodServices;
  readonly observer: RuntimeObserver;
  readonly workers: PodWorkers;
  readonly volumes: VolumeSource;
}

export async function buildNodeStats(
  { settings, clock, logger }: Pick<NodeAgentOptions, 'settings' | 'clock' | 'logger'>,
  rooms: StatsRooms,
): Promise<NodeStats> {
  const { hierarchy, nodeName, built, observer, workers, volumes } = rooms;
  const { housekeepingMs, runtimeCgroup, systemCgroup } = settings.stats;
  const pods = () => [...workers.all()].map(({ pod, status }) => measured(pod, status?.startTime));
  const measured = (pod: Pod, startTime: string | undefined): MeasuredPod => {
    const own = settings.cgroups.perQos ? built.cgroups.pathOf(pod) : undefined;
    return measuredPod(pod, observer.pod(pod.metadata.uid), {
      startTime,
      cgroup: own,
      root: settings.cgroups.root,
    });
  };
  const system = new SystemCgroups(hierarchy.version, {
    endpoint: settings.runtime.endpoint,
    runtime: runtimeCgroup,
    misc: systemCgroup,
    pods: settings.cgroups.perQos ? built.cgroups.classPaths() : undefined,
  });
  const sampler = new NodeSampler({
    reader: new CgroupUsageReader(hierarchy.layout, clock),
    pods,
    systemGroups: () => system.known(),
    clock,
  });
  const disks = new DiskUsage({
    rootDirectory: settings.rootDirectory,
    runtime: runtimeDisks(built.runtime),
    logs: () =>
      [...workers.all()].flatMap(({ pod }) =>
        observer.pod(pod.metadata.uid).containers.map(({ name }) => ({
          uid: pod.metadata.uid,
          namespace: pod.metadata.namespace,
          pod: pod.metadata.name,
          container: name,
          directory: join(built.directories.logDirectory(pod), name),
        })),
      ),
    clock,
    logger,
  });
  return new NodeStats({
    nodeName,
    sampler: {
      sample: async (detail, maxAgeMs) => {
        await system.find();
        return await sampler.sample(detail, maxAgeMs);
      },
    },
    disks,
    volumes,
    machine: await describeMachine(rooms.facts, settings.cluster?.node),
    ages: agesFor(housekeepingMs),
    logger: logger.with({ logger: 'stats' }),
  });
}

/** The volumes of pods as the volumes' room has measured them last. */
export function volumeSource(storage: LocalStorage, workers: PodWorkers): VolumeSource {
  return (podUid) => {
    const pod = workers.get(podUid)?.pod;
    return storage.volumeStats(podUid).map(({ time: at, ...figures }): MeasuredVolume => {
      const volume = pod?.spec.volumes?.find(({ name }) => name === figures.name);
      const claim =
        volume?.persistentVolumeClaim?.claimName ??
        (volume?.ephemeral && `${pod!.metadata.name}-${volume.name}`);
      return {
        ...figures,
        at,
        ephemeral:
          volume?.configMap !== undefined || (volume?.emptyDir !== undefined && !volume.emptyDir.medium),
        ...(claim && pod && { claim: { name: claim, namespace: pod.metadata.namespace } }),
      };
    });
  };
}

function measuredPod(
  { metadata: { uid, name, namespace } }: Pod,
  observed: ObservedPod,
  where: { startTime: string | undefined; cgroup: string | undefined; root: string },
): MeasuredPod {
  const sandbox = observed.sandboxes.find(({ state }) => state === 'Ready');
  const containers = new Map<string, MeasuredContainer>();
  // Newest first: of two that run under one name, the newer one counts.
  for (const { id, name: container, image, state, startedAt } of observed.containers) {
    if (state !== 'Running' || startedAt === undefined || containers.has(container)) continue;
    containers.set(container, { id, name: container, image, startedAt });
  }
  const started = Date.parse(where.startTime ?? '');
  return {
    uid,
    name,
    namespace,
    startedAt: Number.isNaN(started) ? undefined : started,
    cgroup: where.cgroup,
    parentCgroup: where.cgroup ?? where.root,
    sandbox: sandbox && { id: sandbox.id, createdAt: sandbox.createdAt, hostNetwork: sandbox.hostNetwork },
    containers: [...containers.values()],
  };
}

function runtimeDisks(runtime: ContainerRuntime): RuntimeDisks {
  return {
    async stores(signal) {
      const { imageFilesystems, containerFilesystems } = await runtime.imageFsInfo({}, { signal });
      const [images, containers] = [imageFilesystems[0], containerFilesystems[0]];
      return { images: images && disk(images), containers: containers && disk(containers) };
    },
    async layers(signal) {
      const { stats } = await runtime.listContainerStats({ filter: undefined }, { signal });
      return new Map(
        stats.flatMap(({ attributes, writableLayer }) =>
          attributes && writableLayer ? [[attributes.id, disk(writableLayer)] as const] : [],
        ),
      );
    },
  };
}

function disk({ fsId, usedBytes, inodesUsed }: FilesystemUsage): RuntimeDisk {
  return {
    mountpoint: fsId?.mountpoint ?? '',
    usedBytes: usedBytes && Number(usedBytes.value),
    inodesUsed: inodesUsed && Number(inodesUsed.value),
  };
}

async function describeMachine(
  facts: MachineFacts,
  { machineIdFiles, bootIdFiles }: Pick<MachineIdentityOptions, 'machineIdFiles' | 'bootIdFiles'> = {},
): Promise<MachineDescription> {
  const identity = readMachineIdentity({
    ...(machineIdFiles && { machineIdFiles }),
    ...(bootIdFiles && { bootIdFiles }),
  });
  const cpuinfo = await readFile('/proc/cpuinfo', 'utf8').catch(() => '');
  const { cores, sockets } = parseProcessorTopology(cpuinfo);
  return {
    bootId: identity.bootId,
    machineId: identity.machineId,
    systemUuid: identity.systemUuid,
    cores: facts.cpus,
    physicalCores: cores,
    sockets,
    memoryBytes: facts.memory,
    swapBytes: facts.swaps.reduce((sum, { size }) => sum + size, 0),
    kernelVersion: identity.kernelVersion,
    osVersion: identity.osImage,
  };
}
