/**
 * `status` of the Node, but for conditions and addresses: what the machine has, what it gives to pods, what
 * it runs. Pure. What a fact is not known of yet (a runtime still starting, volumes still being found) stays
 * as it was; what others have added, such as resources an operator advertises by hand, is kept.
 */
import type { ResourceAmounts } from '../kubernetes/pod-resources.ts';
import { formatQuantity } from '../kubernetes/quantity.ts';
import type { MachineIdentity } from './machine-identity.ts';
import type {
  AttachedVolume,
  NodeImage,
  NodeRuntimeHandler,
  NodeStatus,
  NodeSystemInfo,
} from './node-types.ts';

/** What is true of the node at the moment. Undefined: not known yet. */
export interface NodeStatusFacts {
  readonly capacity: ResourceAmounts;
  readonly allocatable: ResourceAmounts;
  /** Resources of device plugins that have gone for good: reported as 0. */
  readonly goneResources?: readonly string[];
  /** The devices of before are forgotten (a new machine under the old name): unknown ones count 0. */
  readonly forgetExtendedResources?: boolean;
  readonly machine: MachineIdentity;
  /** Bytes of swap space; 0 without. */
  readonly swapBytes: number;
  readonly runtime: { readonly name: string; readonly version: string } | undefined;
  /** `v1.36.2` */
  readonly kubeletVersion: string;
  /** Port of the HTTPS server. */
  readonly port: number;
  readonly images: readonly NodeImage[] | undefined;
  /** `nodeStatusMaxImages`; -1 for no limit. */
  readonly maxImages: number;
  /** Names of attachable volumes in use, once volumes have been looked through after the start. */
  readonly volumesInUse: readonly string[] | undefined;
  /** Volumes this agent attached itself; undefined where the control plane attaches and writes them. */
  readonly volumesAttached?: readonly AttachedVolume[] | undefined;
  readonly runtimeHandlers: readonly NodeRuntimeHandler[] | undefined;
  /** CRI feature `supplemental_groups_policy`; undefined when the runtime does not tell. */
  readonly supplementalGroupsPolicy: boolean | undefined;
  /** Undefined while the gate NodeDeclaredFeatures is off. */
  readonly declaredFeatures: readonly string[] | undefined;
}

type DescribedStatus = Omit<NodeStatus, 'conditions' | 'addresses'>;

const namesPerImage = 5;

/** The status a node should have, given the one it has. */
export function nodeStatus(existing: NodeStatus | undefined, facts: NodeStatusFacts): DescribedStatus {
  const { conditions: _, addresses: __, volumesInUse: ___, ...before } = existing ?? {};
  return {
    ...before,
    ...nodeResources(existing, facts),
    daemonEndpoints: { kubeletEndpoint: { Port: facts.port } },
    nodeInfo: nodeInfo(existing?.nodeInfo, facts),
    ...(facts.images && { images: reportedImages(facts.images, facts.maxImages) }),
    ...volumesInUse(existing, facts),
    ...(facts.volumesAttached && { volumesAttached: [...facts.volumesAttached] }),
    ...(facts.runtimeHandlers && { runtimeHandlers: [...facts.runtimeHandlers] }),
    ...(facts.supplementalGroupsPolicy === undefined
      ? {}
      : { features: { supplementalGroupsPolicy: facts.supplementalGroupsPolicy } }),
    ...(facts.declaredFeatures && { declaredFeatures: [...facts.declaredFeatures].sort() }),
  };
}

/** None is told by leaving the field out, so that one who had some before takes them back. */
function volumesInUse(
  existing: NodeStatus | undefined,
  facts: Pick<NodeStatusFacts, 'volumesInUse'>,
): Pick<NodeStatus, 'volumesInUse'> {
  const inUse = facts.volumesInUse ?? existing?.volumesInUse ?? [];
  return inUse.length > 0 ? { volumesInUse: [...inUse].sort() } : {};
}

/** `status.capacity` and `status.allocatable` as text. */
export function nodeResources(
  existing: Pick<NodeStatus, 'capacity' | 'allocatable'> | undefined,
  facts: Pick<NodeStatusFacts, 'capacity' | 'allocatable' | 'goneResources' | 'forgetExtendedResources'>,
): { capacity: Record<string, string>; allocatable: Record<string, string> } {
  const capacity: Record<string, string> = {};
  const allocatable: Record<string, string> = {};
  for (const [name, amount] of Object.entries(existing?.capacity ?? {})) {
    // The kernel alone says which huge pages there are.
    if (name.startsWith('hugepages-')) continue;
    const kept = facts.forgetExtendedResources && isExtendedResource(name) ? '0' : amount;
    capacity[name] = kept;
    allocatable[name] = kept;
  }
  for (const name of facts.goneResources ?? []) capacity[name] = allocatable[name] = '0';
  for (const [name, amount] of facts.capacity) capacity[name] = formatQuantity(amount);
  for (const [name, amount] of facts.allocatable) allocatable[name] = formatQuantity(amount);
  return { capacity, allocatable };
}

/** A resource with a vendor's name, as device plugins and operators have them. */
function isExtendedResource(name: string): boolean {
  return name.includes('/') && !name.includes('kubernetes.io/') && !name.startsWith('requests.');
}

function nodeInfo(before: NodeSystemInfo | undefined, facts: NodeStatusFacts): NodeSystemInfo {
  const { machine, runtime, swapBytes } = facts;
  return {
    architecture: machine.architecture,
    bootID: machine.bootId,
    containerRuntimeVersion: runtime
      ? `${runtime.name}://${runtime.version}`
      : (before?.containerRuntimeVersion ?? ''),
    kernelVersion: machine.kernelVersion,
    // Always empty by now; the field is still required.
    kubeProxyVersion: '',
    kubeletVersion: facts.kubeletVersion,
    machineID: machine.machineId,
    operatingSystem: 'linux',
    osImage: machine.osImage,
    systemUUID: machine.systemUuid,
    ...(swapBytes > 0 && { swap: { capacity: swapBytes } }),
  };
}

/** The largest images first; of each at most five names, those with a digest before those with a tag. */
export function reportedImages(images: readonly NodeImage[], max: number): NodeImage[] {
  const named = images
    .map(({ names = [], sizeBytes }) => ({
      names: [...names]
        .sort((a, b) => Number(b.includes('@')) - Number(a.includes('@')))
        .slice(0, namesPerImage),
      sizeBytes,
    }))
    // Equal sizes in order of their names: a list that changed by chance would be written again.
    .sort((a, b) => (b.sizeBytes ?? 0) - (a.sizeBytes ?? 0) || compareText(a.names[0], b.names[0]));
  return max < 0 ? named : named.slice(0, max);
}

function compareText(a = '', b = ''): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
