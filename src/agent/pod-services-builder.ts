/** Builds everything executors work with, from settings and facts of the machine. */
import { readdir } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import type { Clock } from '../concurrency/clock.ts';
import { Limiter } from '../concurrency/limiter.ts';
import type { NodeAgentSettings } from '../config/settings.ts';
import { containerAnnotations } from '../kubernetes/pod-identity.ts';
import { bytesOf } from '../kubernetes/pod-resources.ts';
import type { Pod } from '../kubernetes/types.ts';
import { readFileIfExists } from '../linux/atomic-file.ts';
import type { CgroupHierarchy } from '../linux/cgroupfs.ts';
import { SystemdSlices } from '../linux/systemd-slices.ts';
import type { PodAdmission } from '../pods/admission/pod-admission.ts';
import { PodDirectories } from '../pods/environment/pod-directories.ts';
import { podIdRange } from '../pods/environment/sub-ids.ts';
import { cutTerminationMessage, readTerminationMessage } from '../pods/environment/termination-message.ts';
import { UserNamespaces } from '../pods/environment/user-namespaces.ts';
import type { PodServices } from '../pods/executors/pod-services.ts';
import { HookMetrics } from '../pods/hooks/hook-metrics.ts';
import { NodePodConfigs, type PodUserNamespaces } from '../pods/pod-configs.ts';
import type { PodRecords } from '../pods/pod-records.ts';
import type { PodWorkerPorts } from '../pods/pod-worker-ports.ts';
import { PullMessages } from '../pods/pull-messages.ts';
import { type CgroupDriver, unmanagedCgroupParent } from '../resources/cgroup-names.ts';
import { podsPidsMax, podsShare } from '../resources/node-capacity.ts';
import type { ProtectedMemory } from '../resources/pod-cgroup-values.ts';
import { PodCgroups } from '../resources/pod-cgroups.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';
import { imageVolumesMissing } from '../runtime/cri/image-volume-support.ts';
import type { RuntimeFacts } from '../runtime/cri/runtime-check.ts';
import type { RuntimeObserver } from '../runtime/runtime-observer.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { PodVolumes } from '../volumes/pod-volumes.ts';
import { createVolumeKinds } from '../volumes/volume-kinds.ts';
import { VolumeMetrics } from '../volumes/volume-metrics.ts';
import { buildAdmission } from './admission-builder.ts';
import type { Membership, NodeMembership } from './cluster/membership.ts';
import type { ImageRooms } from './images-builder.ts';
import { measuredCgroups } from './metrics-builder.ts';
import type { MachineFacts } from './node-facts.ts';
import { type NodeResources, nodeResources } from './node-resources.ts';
import { rootAnnotation } from './ownership.ts';

export interface PodServicesInput {
  readonly settings: NodeAgentSettings;
  readonly featureEnabled: (gate: string) => boolean;
  readonly facts: MachineFacts;
  readonly nodeName: string;
  readonly hierarchy: CgroupHierarchy;
  readonly runtime: ContainerRuntime;
  /** What the runtime is now; it may change while the agent runs. */
  readonly runtimeFacts: () => RuntimeFacts;
  readonly observer: RuntimeObserver;
  readonly records: PodRecords;
  readonly membership: Membership;
  readonly images: ImageRooms;
  /** A pod's status has something new to tell. */
  readonly wake: (podUid: string) => void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** What executors work with, and the rooms behind it that other parts of the agent look into. */
export interface BuiltPodServices {
  readonly services: PodServices;
  readonly cgroups: PodCgroups;
  readonly directories: PodDirectories;
  readonly containerLogsDirectory: string;
  readonly volumes: PodVolumes;
  readonly runtime: ContainerRuntime;
  readonly pullMessages: PullMessages;
  readonly readMessages: PodWorkerPorts['readMessages'];
  readonly recursiveReadOnly: (pod: Pod) => boolean;
  readonly admission: PodAdmission;
}

/**
 * A call that takes longer gives its place to the next: slow networks hold up only their own pods. Where many
 * pods start at once every call takes its time, and more calls at once would only make all of them slower.
 */
const callHoldMs = { usual: 1000, longest: 5000 };

/**
 * Builds cgroups, directories, volumes, admission and the configurations of pods; starts nothing. Rejects
 * when what an earlier agent kept on disk cannot be read.
 */
export async function buildPodServices(input: PodServicesInput): Promise<BuiltPodServices> {
  const { settings, facts, clock, logger, metrics, observer, records, runtime, membership } = input;
  const { events, objects } = membership;
  const { rootDirectory, podLogsDirectory } = settings;
  const node = nodeResources(facts, settings);
  const { allocatable } = node;
  const driver = cgroupDriver(input);
  const cgroups = buildCgroups(input, driver, node);
  const unmanagedParent = unmanagedCgroupParent(driver, settings.cgroups.root);
  const containerLogsDirectory = join(dirname(podLogsDirectory), 'containers');
  const pullMessages = new PullMessages(input.wake);
  const directories = new PodDirectories({
    rootDirectory,
    podLogsDirectory,
    // Beside the pods' logs, which by default makes it /var/log/containers, where log collectors look.
    containerLogsDirectory,
  });
  const volumes = new PodVolumes({
    rootDirectory,
    kinds: createVolumeKinds({
      nodeAllocatableMemory: () => bytesOf(allocatable),
      nodeAllocatable: allocatable,
      contents: objects.volumeContents,
      events,
      clock,
    }),
    metrics: new VolumeMetrics({ metrics, clock }),
  });
  const recursiveReadOnly = (handler: string) =>
    handlerFeatures(input, handler)?.recursiveReadOnlyMounts ?? false;
  const configs = new NodePodConfigs({
    nodeName: input.nodeName,
    nodeAddresses: () => knownHostIps(membership.node, facts),
    nodeAllocatable: allocatable,
    dns: {
      clusterDns: settings.dns.clusterDns,
      clusterDomain: settings.dns.clusterDomain ?? '',
      nodeIps: facts.addresses,
    },
    resolvConf: settings.dns.resolvConf,
    resources: node.forContainers,
    security: {
      rootDirectory,
      seccompDefault: settings.seccompDefault,
      thermalThrottlePaths: await thermalThrottlePaths(),
    },
    stopSignals: input.featureEnabled('ContainerStopSignals'),
    recursiveReadOnly,
    userNamespaces: await buildUserNamespaces(input),
    selinux: facts.selinux,
    sandboxAnnotations: { [rootAnnotation]: rootDirectory },
    cgroupParentOf: settings.cgroups.perQos ? (pod) => cgroups.parentOf(pod) : () => unmanagedParent,
    directories,
    volumes,
    images: input.images.puller,
    pullMessages,
    credentialsFor: async (image, pod, signal) => {
      const { namespace, name, uid } = pod.metadata;
      return await input.images.keyring.credentialsFor(image, {
        pod: { namespace, name, uid, serviceAccountName: pod.spec.serviceAccountName },
        podSecrets: await objects.pullSecrets(pod, signal),
      });
    },
    cluster: objects,
    imageVolumesMissing: () => imageVolumesMissing(input.runtimeFacts()),
    events,
  });
  const services: PodServices = {
    runtime,
    observer,
    images: configs,
    configs,
    volumes: configs,
    cgroups: settings.cgroups.perQos ? measuredCgroups(cgroups, input) : withoutCgroups,
    files: directories,
    ...(membership.pods.objects && { objects: membership.pods.objects }),
    records,
    calls: new Limiter({
      limit: 2 * availableParallelism(),
      holdMs: callHoldMs.usual,
      longestHoldMs: callHoldMs.longest,
      clock,
    }),
    events,
    hookMetrics: new HookMetrics(metrics),
    clock,
    logger,
  };
  return {
    services,
    cgroups,
    directories,
    containerLogsDirectory,
    volumes,
    runtime,
    pullMessages,
    readMessages: messageReader(directories, observer),
    recursiveReadOnly: (pod) => recursiveReadOnly(configs.knownHandler(pod)),
    admission: buildAdmission({ ...input, allocatable, events }),
  };
}

/** What the cluster knows, or what this machine found. */
export function knownHostIps(
  node: Pick<NodeMembership, 'hostIps'>,
  { addresses }: MachineFacts,
): readonly string[] {
  const known = node.hostIps();
  return known.length > 0 ? known : addresses;
}

/** With `cgroupsPerQOS: false` containers go straight below the root and nobody keeps a tree. */
const withoutCgroups: PodServices['cgroups'] = { ensurePod: async () => {}, removePod: async () => {} };

/** The runtime's word counts: with two drivers at odds, containers land outside of their pod's cgroup. */
function cgroupDriver({ settings, runtimeFacts, logger }: PodServicesInput): CgroupDriver {
  const configured = settings.cgroups.driver;
  const driver = runtimeFacts().cgroupDriver ?? configured;
  if (driver !== configured) {
    logger.warn('The runtime uses another cgroup driver than configured; following the runtime', {
      configured,
      runtime: driver,
    });
  }
  return driver;
}

function buildCgroups(
  { settings, facts, hierarchy, metrics, logger }: PodServicesInput,
  driver: CgroupDriver,
  { capacity, reservation }: NodeResources,
): PodCgroups {
  const { cgroups } = settings;
  const protectMemory = cgroups.memoryQos?.reservation === 'TieredReservation';
  const systemd = driver === 'systemd' && SystemdSlices.isRunning() ? new SystemdSlices() : undefined;
  return new PodCgroups({
    hierarchy,
    driver,
    cgroupRoot: cgroups.root,
    ...(systemd && { systemd }),
    pod: {
      cpuCfsQuota: cgroups.cpuCfsQuota,
      cpuPeriod: cgroups.cpuCfsPeriodUs,
      podPidsLimit: cgroups.podPidsLimit ?? -1,
      hugePageSizes: facts.hugePages.map(({ pageSize }) => pageSize),
      protectMemory,
    },
    share: podsShare(capacity, reservation),
    enforced: cgroups.enforcePods,
    pidsMax: podsPidsMax(facts.maxProcesses, reservation),
    ...(cgroups.memoryQos && { onProtected: protectedMemoryMetrics(metrics) }),
    logger,
  });
}

function protectedMemoryMetrics(metrics: Metrics): (memory: ProtectedMemory) => void {
  const min = metrics.gauge({
    name: 'kubelet_memory_qos_node_memory_min_bytes',
    help: 'Memory that is never reclaimed from pods (memory.min of the cgroup of all pods).',
  });
  const low = metrics.gauge({
    name: 'kubelet_memory_qos_node_memory_low_bytes',
    help: 'Memory that is reclaimed last from pods (memory.low of the cgroup of all pods).',
  });
  return ({ memoryMin, memoryLow }) => {
    min.set(memoryMin);
    low.set(memoryLow);
  };
}

async function thermalThrottlePaths(): Promise<string[]> {
  const directory = '/sys/devices/system/cpu';
  const names = await readdir(directory).catch((): string[] => []);
  const found: string[] = [];
  for (const name of names.filter((entry) => /^cpu\d+$/.test(entry))) {
    const entries = await readdir(`${directory}/${name}`).catch((): string[] => []);
    if (entries.includes('thermal_throttle')) found.push(`${directory}/${name}/thermal_throttle`);
  }
  return found;
}

function handlerFeatures({ runtimeFacts }: PodServicesInput, name: string) {
  return runtimeFacts().handlers.find((handler) => handler.name === name)?.features;
}

async function buildUserNamespaces(input: PodServicesInput): Promise<PodUserNamespaces> {
  const { settings, logger } = input;
  const idsPerPod = settings.userIdsPerPod;
  const [subuid, subgid, passwd] = await Promise.all(
    ['/etc/subuid', '/etc/subgid', '/etc/passwd'].map(readFileIfExists),
  );
  const available = podIdRange({ subuid, subgid, passwd }, { maxPods: settings.maxPods, idsPerPod });
  const { rootDirectory } = settings;
  const namespaces = new UserNamespaces({ rootDirectory, available, idsPerPod, logger });
  await namespaces.recover();
  return {
    supports: (handler) => handlerFeatures(input, handler)?.userNamespaces ?? false,
    allocate: (uid) => namespaces.allocate(uid),
    release: (uid) => namespaces.release(uid),
  };
}

function messageReader(
  directories: PodDirectories,
  observer: RuntimeObserver,
): PodWorkerPorts['readMessages'] {
  return async (pod: Pod, containerIds) => {
    const { uid } = pod.metadata;
    const wanted = observer.pod(uid).containers.filter(({ id }) => containerIds.includes(id));
    const count = (pod.spec.initContainers ?? []).length + pod.spec.containers.length;
    const read = wanted.map(async ({ id, name, attempt, annotations, exitCode, logPath, message }) => {
      const isShown = Boolean(annotations[containerAnnotations.terminationMessagePath]);
      const left = await readTerminationMessage({
        ...(isShown && { file: directories.terminationMessageFile(uid, name, attempt) }),
        policy: annotations[containerAnnotations.terminationMessagePolicy] ?? 'File',
        exitCode: exitCode ?? 137,
        ...(logPath && { log: logPath }),
      });
      return [id, cutTerminationMessage(left || (message ?? ''), count)] as const;
    });
    return Object.fromEntries(await Promise.all(read));
  };
}
