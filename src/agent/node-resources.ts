/** What this node has, keeps for itself and gives to pods: facts of the machine under the settings. Pure. */
import type { NodeAgentSettings } from '../config/settings.ts';
import { bytesOf, type ResourceAmounts } from '../kubernetes/pod-resources.ts';
import { type NodeReservation, nodeAllocatable, nodeCapacity } from '../resources/node-capacity.ts';
import type { NodeResourceSettings } from '../runtime/translation/linux-resources.ts';
import type { MachineFacts } from './node-facts.ts';

/**
 * Amounts as `status.capacity` and `status.allocatable` of the node show them, and what follows for
 * containers.
 */
export interface NodeResources {
  /** `status.capacity` */
  readonly capacity: ResourceAmounts;
  /** What is kept from pods. */
  readonly reservation: NodeReservation;
  /** `status.allocatable` */
  readonly allocatable: ResourceAmounts;
  /** What requests and limits of containers are translated by. */
  readonly forContainers: NodeResourceSettings;
}

/** The node's resources; the same facts and settings always give the same. */
export function nodeResources(
  facts: MachineFacts,
  settings: Pick<NodeAgentSettings, 'cgroups' | 'maxPods' | 'podsPerCore'>,
): NodeResources {
  const { cgroups } = settings;
  const { kubeReserved, systemReserved, evictionHard, reservedCpus, memoryQos } = cgroups;
  const capacity = nodeCapacity(facts, settings);
  const reservation: NodeReservation = {
    kubeReserved,
    systemReserved,
    evictionHard,
    ...(reservedCpus && { reservedSystemCpus: reservedCpus.length }),
  };
  const allocatable = nodeAllocatable(capacity, reservation);
  return {
    capacity,
    reservation,
    allocatable,
    forContainers: {
      cgroupVersion: facts.cgroupVersion,
      nodeMemoryBytes: facts.memory,
      cpuQuota: { enabled: cgroups.cpuCfsQuota, periodUs: cgroups.cpuCfsPeriodUs },
      hugePageSizes: facts.hugePages.map(({ pageSize }) => pageSize),
      swap: {
        controllerAvailable: facts.swapAccounting,
        behavior: cgroups.swap,
        totalBytes: facts.swaps.reduce((sum, { size }) => sum + size, 0),
      },
      singleProcessOomKill: cgroups.singleProcessOomKill ?? facts.cgroupVersion === 1,
      memoryQos: memoryQos && {
        ...memoryQos,
        nodeAllocatableBytes: bytesOf(allocatable),
        pageSizeBytes: facts.pageSize,
      },
    },
  };
}
