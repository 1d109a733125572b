/**
 * The downward API: values about a pod and its containers that its environment and files can show.
 */
import { findContainer } from './init-containers.ts';
import { amountsOf, isPodLevelResource, type ResourceAmounts } from './pod-resources.ts';
import { parseQuantity, type Quantity, zeroQuantity } from './quantity.ts';
import type { Container, Pod } from './types.ts';

/** What the node knows about a pod and the pod does not say itself. */
export interface PodFacts {
  readonly nodeName: string;
  /** The node's addresses, main family first. */
  readonly hostIps: readonly string[];
  /** The pod's addresses; for pods on the host's network the node's are used when empty. */
  readonly podIps: readonly string[];
  /** Stands in for limits that are not set. */
  readonly nodeAllocatable: ResourceAmounts;
}

/** The reference names something the downward API does not show; `message` says what. */
export class DownwardFieldError extends Error {
  override readonly name = 'DownwardFieldError';
}

/** The value of a `fieldRef` path in an environment variable. Throws {@link DownwardFieldError}. */
export function podFieldValue(pod: Pod, fieldPath: string, facts: PodFacts): string {
  const keyed = /^metadata\.(labels|annotations)\['(.*)'\]$/s.exec(fieldPath);
  if (keyed) {
    const [, map = '', key = ''] = keyed;
    const values = map === 'labels' ? pod.metadata.labels : pod.metadata.annotations;
    return values && Object.hasOwn(values, key) ? (values[key] ?? '') : '';
  }
  const podIps = facts.podIps.length === 0 && pod.spec.hostNetwork ? facts.hostIps : facts.podIps;
  switch (fieldPath) {
    case 'metadata.name':
      return pod.metadata.name;
    case 'metadata.namespace':
      return pod.metadata.namespace;
    case 'metadata.uid':
      return pod.metadata.uid;
    case 'spec.nodeName':
      return pod.spec.nodeName || facts.nodeName;
    case 'spec.serviceAccountName':
      return pod.spec.serviceAccountName ?? '';
    case 'status.hostIP':
      return facts.hostIps[0] ?? '';
    case 'status.hostIPs':
      return facts.hostIps.join(',');
    case 'status.podIP':
      return podIps[0] ?? '';
    case 'status.podIPs':
      return podIps.join(',');
    default:
      throw new DownwardFieldError(`unsupported fieldPath: ${fieldPath}`);
  }
}

export interface ResourceFieldReference {
  /** The container asked about; the one that asks when absent. */
  readonly containerName?: string | undefined;
  /** `limits.cpu`, `requests.memory`, … */
  readonly resource: string;
  /** A quantity; `1` when absent or zero. */
  readonly divisor?: string | undefined;
}

/**
 * The value of a `resourceFieldRef`: the amount over the divisor, rounded up. A limit that is not set is the
 * pod-level limit, else the node's allocatable. Throws {@link DownwardFieldError}.
 */
export function resourceFieldValue(
  pod: Pod,
  container: Container,
  reference: ResourceFieldReference,
  nodeAllocatable: ResourceAmounts,
): string {
  const { containerName, resource } = reference;
  const target =
    containerName && containerName !== container.name
      ? findContainer(pod.spec, containerName)?.container
      : container;
  if (!target) throw new DownwardFieldError(`container ${containerName} not found`);
  const parts = /^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)$/.exec(resource);
  const [, list, name = ''] = parts ?? [];
  if (!list) throw new DownwardFieldError(`unsupported container resource : ${resource}`);

  const amount =
    list === 'requests'
      ? amountsOf(target.resources?.requests).get(name)
      : limitOf(pod, target, name, nodeAllocatable);
  return divided(amount ?? zeroQuantity, parseDivisor(reference.divisor), name === 'cpu');
}

function limitOf(
  pod: Pod,
  container: Container,
  name: string,
  allocatable: ResourceAmounts,
): Quantity | undefined {
  const isSet = (amount: Quantity | undefined) => amount !== undefined && amount.nano > 0n;
  const own = amountsOf(container.resources?.limits).get(name);
  if (isSet(own)) return own;
  const podLevel = isPodLevelResource(name) ? amountsOf(pod.spec.resources?.limits).get(name) : undefined;
  if (isSet(podLevel)) return podLevel;
  return name.startsWith('hugepages-') ? own : allocatable.get(name);
}

function parseDivisor(text: string | undefined): Quantity {
  const divisor = parseQuantity(text || '1');
  return divisor.nano > 0n ? divisor : parseQuantity('1');
}

/** Cpu is counted in thousandths before dividing, everything else in whole units. */
function divided(amount: Quantity, divisor: Quantity, isCpu: boolean): string {
  const unit = isCpu ? 10n ** 6n : 10n ** 9n;
  const whole = (nano: bigint) => (nano + unit - 1n) / unit;
  const [dividend, by] = [whole(amount.nano), whole(divisor.nano)];
  return ((dividend + by - 1n) / by).toString();
}
