/** What the kernel has on its books for one process: memory now, processor time so far. */
import { readFileSync } from 'node:fs';

/** USER_HZ, which the kernel fixes at 100 for everything in /proc on the architectures we run on. */
const ticksPerSecond = 100;
const kibPerMib = 1024;

/** Processor seconds of all threads, in user and kernel mode. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** Resident memory in MiB (VmRSS). */
export function residentMib(pid: number): number {
  const kib = /^VmRSS:\s*(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kib) / kibPerMib;
}
