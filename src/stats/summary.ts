/** From samples to the answer of `/stats/summary`. Pure. */
import type { CgroupUsage } from '../linux/cgroup-usage/cgroup-usage.ts';
import type { InterfaceCounters } from '../linux/network-counters.ts';
import type { Pressure } from '../linux/pressure.ts';
import { type DiskSample, type FileSystem, logKey, type StoreUsage } from './disk-usage.ts';
import type { ContainerSample, GroupSample, NodeSample, PodSample, SystemGroup } from './node-sample.ts';
import type {
  ContainerStats,
  CpuStats,
  FsStats,
  InterfaceStats,
  IoStats,
  MemoryStats,
  NetworkStats,
  NodeStats,
  PodStats,
  PsiStats,
  Summary,
  SwapStats,
  VolumeStats,
} from './summary-types.ts';
import type { MeasuredVolume, VolumeSource } from './volume-source.ts';

/** The system cgroups that a summary tells of, in its order. */
const systemContainers: readonly SystemGroup[] = ['kubelet', 'runtime', 'misc', 'pods'];

/** Everything there is to tell. */
export function fullSummary(
  nodeName: string,
  sample: NodeSample,
  disks: DiskSample,
  volumes: VolumeSource,
): Summary {
  const { node, network, defaultInterface, tasks } = sample;
  const time = timeOf(node.usage.at);
  const diskTime = timeOf(disks.at);
  const imageFs = storeStats(disks.images, diskTime);
  const containerFs = storeStats(disks.containers, diskTime);
  return {
    node: {
      ...nodeStats(nodeName, sample),
      ...usageIo(node.usage),
      ...(network.length > 0 && { network: networkStats(network, time, defaultInterface ?? 'eth0') }),
      ...(disks.node && {
        fs: fsStats(disks.node, diskTime, disks.node.usedBytes, disks.node.inodes - disks.node.inodesFree),
      }),
      ...((imageFs ?? containerFs) && {
        runtime: { ...(imageFs && { imageFs }), ...(containerFs && { containerFs }) },
      }),
      rlimit: { time: timeOf(sample.at), maxpid: tasks.max, curproc: tasks.running },
      ...swapOf(node),
    },
    pods: started(sample).map((pod) => fullPod(pod, disks, volumes(pod.pod.uid))),
  };
}

/** What `only_cpu_and_memory=true` asks for: nothing that lies on a disk or goes over a network. */
export function cpuAndMemorySummary(nodeName: string, sample: NodeSample): Summary {
  return {
    node: { ...nodeStats(nodeName, sample), ...swapOf(sample.node) },
    pods: started(sample).map((pod) => {
      const { cpu, memory, swap } = podUsage(pod);
      return {
        ...podHead(pod),
        containers: pod.containers.map((each) => ({
          ...containerHead(each),
          ...cpuAndMemory(each),
          ...swapOf(each),
        })),
        ...(cpu && { cpu }),
        ...(memory && { memory }),
        ...(swap && { swap }),
      };
    }),
  };
}

/** RFC 3339 in whole seconds, as Kubernetes writes times. */
export function timeOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** A pod that was not seen to start is not told of. */
function started({ pods }: NodeSample): PodSample[] {
  return pods.filter(({ pod, group, containers }) => {
    return pod.startedAt !== undefined && (group !== undefined || containers.length > 0);
  });
}

function nodeStats(nodeName: string, { node, system }: NodeSample): NodeStats {
  const told: ContainerStats[] = [];
  for (const name of systemContainers) {
    const group = system.get(name);
    if (group)
      told.push({
        name,
        startTime: startOf(group),
        ...cpuAndMemory(group),
        ...usageIo(group.usage),
        ...swapOf(group),
      });
  }
  return {
    nodeName,
    ...(told.length > 0 && { systemContainers: told }),
    startTime: startOf(node),
    ...cpuAndMemory(node),
  };
}

function startOf({ createdAt }: GroupSample): string | null {
  return createdAt === undefined ? null : timeOf(createdAt);
}

function podHead({ pod }: PodSample): Pick<PodStats, 'podRef' | 'startTime'> {
  const { name, namespace, uid, startedAt } = pod;
  return { podRef: { name, namespace, uid }, startTime: startedAt === undefined ? null : timeOf(startedAt) };
}

function containerHead({ container }: ContainerSample): Pick<ContainerStats, 'name' | 'startTime'> {
  return { name: container.name, startTime: timeOf(container.startedAt) };
}

function fullPod(sample: PodSample, disks: DiskSample, volumes: readonly MeasuredVolume[]): PodStats {
  const { pod, group, network } = sample;
  const containers = sample.containers.map((each) => fullContainer(each, pod.uid, disks));
  const { cpu, memory, swap } = podUsage(sample);
  const storage = ephemeralStorage(containers, disks, volumes);
  const tasks = group?.usage.tasks;
  return {
    ...podHead(sample),
    containers,
    ...(cpu && { cpu }),
    ...(memory && { memory }),
    ...(group && usageIo(group.usage)),
    ...(network &&
      network.length > 0 && {
        network: networkStats(network, timeOf(sample.group?.usage.at ?? disks.at), 'eth0'),
      }),
    ...(volumes.length > 0 && { volume: volumes.map(volumeStats) }),
    ...(storage && { 'ephemeral-storage': storage }),
    ...(tasks !== undefined && { process_stats: { process_count: tasks } }),
    ...(swap && { swap }),
  };
}

function fullContainer(sample: ContainerSample, podUid: string, disks: DiskSample): ContainerStats {
  const { container, usage } = sample;
  const time = timeOf(disks.at);
  const layer = disks.layers.get(container.id);
  const logs = disks.logs.get(logKey(podUid, container.name));
  const fileSystem = disks.containers?.fileSystem;
  return {
    ...containerHead(sample),
    ...cpuAndMemory(sample),
    ...usageIo(usage),
    ...(layer && { rootfs: fsStats(fileSystem, time, layer.usedBytes, layer.inodesUsed) }),
    ...(logs && { logs: fsStats(disks.node, time, logs.bytes, logs.inodes) }),
    ...swapOf(sample),
  };
}

/** The pod's own cgroup, or where it has none what its containers add up to. */
function podUsage({ group, containers }: PodSample): {
  cpu?: CpuStats;
  memory?: MemoryStats;
  swap?: SwapStats;
} {
  if (group) return { ...cpuAndMemory(group), ...swapOf(group) };
  const [first] = containers;
  if (first === undefined) return {};
  const time = timeOf(first.usage.at);
  const sum = (of: (sample: ContainerSample) => number | undefined) =>
    containers.reduce((total, each) => total + (of(each) ?? 0), 0);
  return {
    cpu: {
      time,
      ...(containers.every(({ nanoCores }) => nanoCores !== undefined) && {
        usageNanoCores: sum(({ nanoCores }) => nanoCores),
      }),
      usageCoreNanoSeconds: sum(({ usage }) => usage.cpu?.totalNs),
    },
    memory: {
      time,
      usageBytes: sum(({ usage }) => usage.memory?.usage),
      workingSetBytes: sum(({ usage }) => usage.memory?.workingSet),
      rssBytes: sum(({ usage }) => usage.memory?.rss),
      pageFaults: sum(({ usage }) => usage.memory?.pageFaults),
      majorPageFaults: sum(({ usage }) => usage.memory?.majorPageFaults),
    },
  };
}

function cpuAndMemory({ usage, nanoCores }: GroupSample): { cpu?: CpuStats; memory?: MemoryStats } {
  const { at, cpu, memory, limits, pressure } = usage;
  const time = timeOf(at);
  return {
    ...(cpu && {
      cpu: {
        time,
        ...(nanoCores !== undefined && { usageNanoCores: nanoCores }),
        usageCoreNanoSeconds: cpu.totalNs,
        ...psi(pressure?.cpu),
      },
    }),
    ...(memory && {
      memory: {
        time,
        ...(limits.memory !== undefined && {
          availableBytes: Math.max(0, limits.memory - memory.workingSet),
        }),
        usageBytes: memory.usage,
        workingSetBytes: memory.workingSet,
        rssBytes: memory.rss,
        pageFaults: memory.pageFaults,
        majorPageFaults: memory.majorPageFaults,
        ...psi(pressure?.memory),
      },
    }),
  };
}

function usageIo({ at, pressure }: CgroupUsage): { io?: IoStats } {
  return pressure?.io ? { io: { time: timeOf(at), ...psi(pressure.io) } } : {};
}

function psi(pressure: Pressure | undefined): { psi?: PsiStats } {
  return pressure ? { psi: { full: pressure.full, some: pressure.some } } : {};
}

function swapOf({ usage: { at, memory, limits } }: GroupSample): { swap?: SwapStats } {
  const swap = memory?.swap;
  if (swap === undefined) return {};
  return {
    swap: {
      time: timeOf(at),
      ...(limits.swap !== undefined && { swapAvailableBytes: Math.max(0, limits.swap - swap) }),
      swapUsageBytes: swap,
    },
  };
}

function networkStats(all: readonly InterfaceCounters[], time: string, main: string): NetworkStats {
  const stats = ({ name, rxBytes, rxErrors, txBytes, txErrors }: InterfaceCounters): InterfaceStats => ({
    name,
    rxBytes,
    rxErrors,
    txBytes,
    txErrors,
  });
  const first = all.find(({ name }) => name === main);
  return { time, ...(first ? stats(first) : { name: '' }), interfaces: all.map(stats) };
}

function storeStats(store: StoreUsage | undefined, time: string): FsStats | undefined {
  return store && fsStats(store.fileSystem, time, store.usedBytes, store.inodesUsed);
}

function fsStats(
  fileSystem: FileSystem | undefined,
  time: string,
  usedBytes: number | undefined,
  inodesUsed: number | undefined,
): FsStats {
  return {
    time,
    ...(fileSystem && { availableBytes: fileSystem.availableBytes, capacityBytes: fileSystem.capacityBytes }),
    ...(usedBytes !== undefined && { usedBytes }),
    ...(fileSystem && { inodesFree: fileSystem.inodesFree, inodes: fileSystem.inodes }),
    ...(inodesUsed !== undefined && { inodesUsed }),
  };
}

function volumeStats(volume: MeasuredVolume): VolumeStats {
  const { name, claim, at, ephemeral: _, abnormal, ...figures } = volume;
  return {
    time: timeOf(at),
    ...figures,
    name,
    ...(claim && { pvcRef: claim }),
    ...(abnormal !== undefined && { volumeHealthStats: { abnormal } }),
  };
}

/** Layers, logs and the volumes that go with the pod, on the node's own file system. */
function ephemeralStorage(
  containers: readonly ContainerStats[],
  { at, node }: DiskSample,
  volumes: readonly MeasuredVolume[],
): FsStats | undefined {
  if (node === undefined) return undefined;
  let bytes = 0;
  let inodes = 0;
  const add = (part: { usedBytes?: number; inodesUsed?: number } | undefined) => {
    bytes += part?.usedBytes ?? 0;
    inodes += part?.inodesUsed ?? 0;
  };
  for (const { rootfs, logs } of containers) {
    add(rootfs);
    add(logs);
  }
  for (const volume of volumes) if (volume.ephemeral) add(volume);
  return fsStats(node, timeOf(at), bytes, inodes);
}
