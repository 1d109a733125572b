/**
 * How much of each resource a node has, keeps for itself, and gives to pods. Pure: facts in, amounts out.
 */
import { amountsOf, type ResourceAmounts } from '../kubernetes/pod-resources.ts';
import {
  formatQuantity,
  type Quantity,
  quantityOf,
  quantityValue,
  subtractQuantities,
  tryParseQuantity,
  zeroQuantity,
} from '../kubernetes/quantity.ts';
import type { HugePagePool } from '../linux/procfs.ts';

/** What the machine has. */
export interface NodeFacts {
  /** Logical CPUs online. */
  readonly cpus: number;
  /** Bytes. */
  readonly memory: number;
  /** Bytes of the file system that holds the root directory; absent where local storage is not counted. */
  readonly ephemeralStorage?: number;
  readonly hugePages: readonly HugePagePool[];
}

/** What is kept from pods. */
export interface NodeReservation {
  /** `kubeReserved` and `systemReserved`: resource name to quantity text. */
  readonly kubeReserved?: Readonly<Record<string, string>>;
  readonly systemReserved?: Readonly<Record<string, string>>;
  /** `evictionHard`: signal to quantity or percentage (`memory.available: 100Mi`, `nodefs.available: 10%`). */
  readonly evictionHard?: Readonly<Record<string, string>>;
  /** How many CPUs `reservedSystemCPUs` lists; replaces the CPU of both reservations. */
  readonly reservedSystemCpus?: number;
}

/** `status.capacity`: `cpu`, `memory`, `pods`, `ephemeral-storage`, `hugepages-<size>`. */
export function nodeCapacity(
  facts: NodeFacts,
  limits: { maxPods: number; podsPerCore?: number },
): ResourceAmounts {
  const perCore = (limits.podsPerCore ?? 0) * facts.cpus;
  const capacity = new Map<string, Quantity>([
    ['cpu', quantityOf(facts.cpus)],
    ['memory', quantityOf(facts.memory, 'BinarySI')],
    ['pods', quantityOf(perCore > 0 ? Math.min(limits.maxPods, perCore) : limits.maxPods)],
  ]);
  if (facts.ephemeralStorage !== undefined) {
    capacity.set('ephemeral-storage', quantityOf(facts.ephemeralStorage, 'BinarySI'));
  }
  for (const { pageSize, pages } of facts.hugePages) {
    const name = `hugepages-${formatQuantity(quantityOf(pageSize, 'BinarySI'))}`;
    capacity.set(name, quantityOf(pageSize * pages, 'BinarySI'));
  }
  return capacity;
}

/**
 * `status.allocatable`: capacity less both reservations and, for memory and ephemeral storage, less what
 * hard eviction keeps free; memory also less what huge pages hold. Never below 0.
 */
export function nodeAllocatable(capacity: ResourceAmounts, reservation: NodeReservation): ResourceAmounts {
  const evicted: Readonly<Record<string, string>> = {
    memory: 'memory.available',
    'ephemeral-storage': 'nodefs.available',
  };
  const allocatable = new Map<string, Quantity>();
  for (const [name, amount] of podsShare(capacity, reservation)) {
    const threshold = reservation.evictionHard?.[evicted[name] ?? ''];
    let left = subtractQuantities(amount, thresholdAmount(threshold, capacity.get(name) ?? zeroQuantity));
    if (name === 'memory') {
      for (const [other, pages] of capacity) {
        if (other.startsWith('hugepages-')) left = subtractQuantities(left, pages);
      }
    }
    allocatable.set(name, notNegative(left));
  }
  return allocatable;
}

/**
 * What the cgroup of all pods may use: capacity less the reservations. The eviction threshold is not taken
 * off, so that the node evicts before the kernel kills.
 */
export function podsShare(capacity: ResourceAmounts, reservation: NodeReservation): ResourceAmounts {
  const reserved = [amountsOf(reservation.kubeReserved), amountsOf(reservation.systemReserved)];
  const share = new Map<string, Quantity>();
  for (const [name, amount] of capacity) {
    let left = amount;
    if (name === 'cpu' && reservation.reservedSystemCpus !== undefined) {
      left = subtractQuantities(left, quantityOf(reservation.reservedSystemCpus));
    } else {
      for (const amounts of reserved) left = subtractQuantities(left, amounts.get(name) ?? zeroQuantity);
    }
    share.set(name, notNegative(left));
  }
  return share;
}

/** `pids.max` of all pods: what the machine can have less `pid` of both reservations. */
export function podsPidsMax(maxProcesses: number, reservation: NodeReservation): number {
  let left = maxProcesses;
  for (const list of [reservation.kubeReserved, reservation.systemReserved]) {
    const pids = tryParseQuantity(list?.['pid']);
    if (pids) left -= quantityValue(pids);
  }
  return Math.max(0, left);
}

function thresholdAmount(threshold: string | undefined, capacity: Quantity): Quantity {
  if (threshold === undefined) return zeroQuantity;
  if (!threshold.endsWith('%')) return tryParseQuantity(threshold) ?? zeroQuantity;
  // The kubelet counts percentages in single precision; any other way nodes would differ by some bytes.
  const share = Math.fround(Math.fround(Number(threshold.slice(0, -1))) / 100);
  // 0% and 100% switch a threshold off.
  if (!(share > 0 && share < 1)) return zeroQuantity;
  return quantityOf(Math.trunc(quantityValue(capacity) * share), 'BinarySI');
}

function notNegative(amount: Quantity): Quantity {
  return amount.nano < 0n ? { ...amount, nano: 0n } : amount;
}
