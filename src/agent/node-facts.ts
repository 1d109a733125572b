/** What this machine is: read once at start, plain values from then on. */
import { readFile, statfs } from 'node:fs/promises';
import { hostname, networkInterfaces, release } from 'node:os';
import type { CgroupHierarchy } from '../linux/cgroupfs.ts';
import {
  countCpuList,
  type HugePagePool,
  readHugePages,
  readMaxProcesses,
  readMemoryInfo,
  readOnlineCpus,
  readPageSize,
  readSwaps,
  type SwapArea,
} from '../linux/procfs.ts';
import { hasSwapAccounting, readSwapEvidence } from '../linux/swap-accounting.ts';

/**
 * The machine as it was when the agent started; what changes later takes a restart of the agent to be seen.
 */
export interface MachineFacts {
  /** The kernel's host name in lower case. */
  readonly hostname: string;
  readonly cpus: number;
  /** The CPUs that are online, as the kernel lists them: `0-3,8`. */
  readonly onlineCpus: string;
  /** Bytes. */
  readonly memory: number;
  /** Bytes of a page of memory. */
  readonly pageSize: number;
  readonly swaps: readonly SwapArea[];
  readonly hugePages: readonly HugePagePool[];
  readonly maxProcesses: number;
  /** Bytes of the file system that holds the root directory. */
  readonly ephemeralStorage?: number;
  readonly cgroupVersion: 1 | 2;
  /** False where the kernel keeps no account of swap. */
  readonly swapAccounting: boolean;
  /** Addresses of the interface with the default route: IPv4 first, at most one of each family. */
  readonly addresses: readonly string[];
  /** As `uname -r` tells it. */
  readonly kernelRelease: string;
  /** The kernel enforces AppArmor profiles. */
  readonly appArmor: boolean;
  /** SELinux is on, with a policy loaded. */
  readonly selinux: boolean;
}

/** Rejects when the kernel does not tell what no node can do without: CPUs, memory, process limits. */
export async function readMachineFacts(
  hierarchy: CgroupHierarchy,
  rootDirectory: string,
): Promise<MachineFacts> {
  const [
    onlineCpus,
    memory,
    pageSize,
    swaps,
    hugePages,
    maxProcesses,
    storage,
    swapAccounting,
    addresses,
    appArmor,
    selinux,
  ] = await Promise.all([
    readOnlineCpus(),
    readMemoryInfo(),
    readPageSize(),
    readSwaps(),
    readHugePages(),
    readMaxProcesses(),
    statfs(rootDirectory).catch(() => undefined),
    readSwapEvidence().then((evidence) => hasSwapAccounting(hierarchy, evidence)),
    defaultAddresses(),
    hasAppArmor(),
    hasSelinux(),
  ]);
  return {
    hostname: hostname().trim().toLowerCase(),
    cpus: countCpuList(onlineCpus),
    onlineCpus,
    memory: memory.total,
    pageSize,
    swaps,
    hugePages,
    maxProcesses,
    ...(storage && { ephemeralStorage: storage.blocks * storage.bsize }),
    cgroupVersion: hierarchy.version,
    swapAccounting,
    addresses,
    kernelRelease: release(),
    appArmor,
    selinux,
  };
}

async function hasAppArmor(): Promise<boolean> {
  const enabled = await readFile('/sys/module/apparmor/parameters/enabled', 'utf8').catch(() => '');
  return enabled.startsWith('Y');
}

/** A kernel that has SELinux built in but no policy labels everything `kernel`. */
async function hasSelinux(): Promise<boolean> {
  const isMounted = await readFile('/sys/fs/selinux/enforce').then(
    () => true,
    () => false,
  );
  const label = isMounted ? await readFile('/proc/self/attr/current', 'utf8').catch(() => '') : '';
  return !['', 'kernel'].includes(label.replace(/[\0\n]+$/, ''));
}

/** The addresses of the interface that the default route leaves by; empty on a machine without one. */
async function defaultAddresses(): Promise<string[]> {
  const routes = await readFile('/proc/net/route', 'utf8').catch(() => '');
  const byDefault = routes
    .split('\n')
    .map((line) => line.split('\t'))
    .find(
      ([, destination, , flags]) =>
        destination === '00000000' && (Number.parseInt(flags ?? '0', 16) & 1) === 1,
    );
  const interfaces = networkInterfaces();
  const candidates = byDefault?.[0] === undefined ? [] : (interfaces[byDefault[0]] ?? []);
  const usable = candidates.filter(({ internal, address }) => !internal && !address.startsWith('fe80:'));
  const first = (family: 'IPv4' | 'IPv6') => usable.find((address) => address.family === family)?.address;
  return [first('IPv4'), first('IPv6')].filter((address) => address !== undefined);
}
