/**
 * Is this node's name another machine's? Two agents under one name would overwrite each other's status and
 * share each other's pods. A node that was set up anew keeps its name, so only a machine that is provably
 * alive counts: one that keeps renewing its lease.
 *
 * Differs from the kubelet, which takes over the object without a word.
 */
import type { Lease, Node } from './node-types.ts';

export interface MachineIds {
  readonly machineId: string;
  readonly systemUuid: string;
}

/** The lease of the other machine as first seen with this renewal. Epoch milliseconds. */
export interface ClaimSighting {
  readonly renewTime: string;
  readonly since: number;
}

/** Whether the object was written by another machine. Clones and containers share one id; both must differ. */
export function isOfAnotherMachine(node: Node, own: MachineIds): boolean {
  const { machineID = '', systemUUID = '' } = node.status?.nodeInfo ?? {};
  if (machineID === '' || systemUUID === '' || own.machineId === '' || own.systemUuid === '') return false;
  return machineID !== own.machineId && systemUUID.toLowerCase() !== own.systemUuid.toLowerCase();
}

/**
 * Whether the holder of the lease lives: it was renewed within its duration, by the clock and, as clocks
 * of two machines may differ, by what has been seen of it.
 */
export function claimOf(
  lease: Lease | undefined,
  seen: ClaimSighting | undefined,
  now: number,
): { alive: boolean; sighting: ClaimSighting | undefined } {
  const renewTime = lease?.spec?.renewTime;
  if (renewTime === undefined) return { alive: false, sighting: undefined };
  const durationMs = (lease?.spec?.leaseDurationSeconds ?? 40) * 1000;
  const sighting = seen?.renewTime === renewTime ? seen : { renewTime, since: now };
  const isRecent = now - Date.parse(renewTime) <= durationMs;
  return { alive: isRecent && now - sighting.since <= durationMs, sighting };
}
