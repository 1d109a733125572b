/**
 * Which capabilities this process has. Being root is not enough to know: containers and hardened machines
 * take some away, and then certain writes fail.
 */
import { readFile } from 'node:fs/promises';

/** Bit numbers of the capabilities the program asks about, as in capability.h. */
const bits = {
  CAP_CHOWN: 0,
  CAP_DAC_OVERRIDE: 1,
  CAP_KILL: 5,
  CAP_NET_ADMIN: 12,
  CAP_SYS_ADMIN: 21,
  CAP_SYS_RESOURCE: 24,
  CAP_MKNOD: 27,
  CAP_SYSLOG: 34,
} as const;

export type Capability = keyof typeof bits;

/** The effective set of a /proc/<pid>/status text as a bit mask. */
export function parseEffectiveCapabilities(status: string): bigint {
  const found = /^CapEff:\s*([0-9a-f]+)$/m.exec(status);
  return found ? BigInt(`0x${found[1]}`) : 0n;
}

/** Whether a bit mask holds a capability. */
export function holds(mask: bigint, capability: Capability): boolean {
  return ((mask >> BigInt(bits[capability])) & 1n) === 1n;
}

/** Whether this process has `capability` now. */
export async function hasCapability(capability: Capability): Promise<boolean> {
  return holds(parseEffectiveCapabilities(await readFile('/proc/self/status', 'utf8')), capability);
}
