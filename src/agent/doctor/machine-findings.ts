/** What of the machine itself is in the way: rights, cgroups, swap, disk, kernel settings. Pure. */
import { parseCpuSet } from '../../config/cpu-set.ts';
import type { SwapArea } from '../../linux/procfs.ts';
import type { Finding } from './finding.ts';

/** What of the machine counts. */
export interface MachineHealth {
  readonly uid: number;
  readonly cgroupVersion: 1 | 2;
  /** Controllers that cgroups can have. */
  readonly controllers: readonly string[];
  /** As the kernel lists them: `0-3`. */
  readonly onlineCpus: string;
  readonly swaps: readonly SwapArea[];
  /** The file system that holds the root directory; absent when it cannot be looked at. */
  readonly disk?: { readonly path: string; readonly bytes: Space; readonly inodes: Space } | undefined;
  /** Values below `/proc/sys`, by dotted name; absent where the kernel has no such setting. */
  readonly sysctls: Readonly<Record<string, string | undefined>>;
}

interface Space {
  readonly free: number;
  readonly total: number;
}

/** What the configuration insists on. */
export interface MachineRules {
  readonly failOnSwap: boolean;
  readonly failOnCgroupV1: boolean;
  /** `reservedSystemCPUs` */
  readonly reservedCpus: readonly number[] | undefined;
}

/** The kernel settings to gather for {@link machineFindings}. */
export const examinedSysctls = [
  'net.ipv4.ip_forward',
  'net.bridge.bridge-nf-call-iptables',
  'net.netfilter.nf_conntrack_count',
  'net.netfilter.nf_conntrack_max',
] as const;

/** Everything that is wrong with the machine; empty when nothing is. */
export function machineFindings(machine: MachineHealth, rules: MachineRules): Finding[] {
  return [
    ...rights(machine),
    ...cgroups(machine, rules),
    ...swap(machine, rules),
    ...reservedCpus(machine, rules),
    ...disk(machine),
    ...kernel(machine),
  ];
}

function* rights({ uid }: MachineHealth): Iterable<Finding> {
  if (uid === 0) return;
  yield {
    check: 'root',
    severity: 'error',
    object: `user ${uid}`,
    problem: 'The agent must run as root: it makes cgroups and mounts',
    remedy: 'Start it with sudo or as a system service',
  };
}

function* cgroups({ cgroupVersion, controllers }: MachineHealth, rules: MachineRules): Iterable<Finding> {
  if (cgroupVersion === 1 && rules.failOnCgroupV1) {
    yield {
      check: 'cgroup-version',
      severity: 'error',
      object: '/sys/fs/cgroup',
      problem: 'This machine uses cgroup v1, which Kubernetes has deprecated',
      remedy:
        'Boot it with cgroup v2 (kernel argument systemd.unified_cgroup_hierarchy=1), ' +
        'or set failCgroupV1: false in the --config file',
    };
  }
  const missing = (names: readonly string[]) => names.filter((name) => !controllers.includes(name));
  for (const [severity, names] of [
    ['error', ['cpu', 'memory']],
    ['warning', ['cpuset', 'pids']],
  ] as const) {
    const lacking = missing(names);
    if (lacking.length === 0) continue;
    yield {
      check: 'cgroup-controllers',
      severity,
      object: '/sys/fs/cgroup',
      problem: `The cgroup controllers ${lacking.join(', ')} are missing, so pods cannot be limited by them`,
      remedy:
        'Take cgroup_disable= off the kernel arguments, add cgroup_enable=memory where the kernel asks for ' +
        'it, and in a container delegate the controllers to it',
    };
  }
}

function* swap({ swaps }: MachineHealth, rules: MachineRules): Iterable<Finding> {
  if (swaps.length === 0 || !rules.failOnSwap) return;
  yield {
    check: 'swap',
    severity: 'error',
    object: swaps.map(({ path }) => path).join(', '),
    problem: 'Swap is on',
    remedy:
      'Turn it off (swapoff -a, and remove it from /etc/fstab), ' +
      'or allow it with failSwapOn: false in the --config file or --fail-swap-on=false',
  };
}

function* reservedCpus({ onlineCpus }: MachineHealth, rules: MachineRules): Iterable<Finding> {
  const online = parseCpuSet(onlineCpus) ?? [];
  const absent = (rules.reservedCpus ?? []).filter((cpu) => !online.includes(cpu));
  if (absent.length === 0) return;
  yield {
    check: 'reserved-cpus',
    severity: 'error',
    object: 'reservedSystemCPUs',
    problem: `It lists CPU ${absent.join(', ')}, but this machine has only ${onlineCpus} online`,
    remedy: 'Correct reservedSystemCPUs in the --config file, or --reserved-cpus',
  };
}

/** Below the first the agent itself cannot write; below the second pods are evicted by default. */
const leastBytes = 64 * 1024 * 1024;
const lowBytes = 0.1;
const lowInodes = 0.05;

function* disk({ disk: space }: MachineHealth): Iterable<Finding> {
  if (!space) return;
  const { path, bytes, inodes } = space;
  const remedy = 'Remove what is not needed there, or give --root-dir a larger file system';
  const isFull = bytes.free < leastBytes || (inodes.total > 0 && inodes.free === 0);
  const share = ({ free, total }: Space) => (total > 0 ? free / total : 1);
  if (!isFull && share(bytes) >= lowBytes && share(inodes) >= lowInodes) return;
  const percent = (space: Space) => `${Math.floor(share(space) * 100)} %`;
  yield {
    check: 'disk',
    severity: isFull ? 'error' : 'warning',
    object: path,
    problem: isFull
      ? 'The disk is full'
      : `The disk has ${percent(bytes)} of its bytes and ${percent(inodes)} of its inodes left, so pods are or ` +
        'will be evicted',
    remedy,
  };
}

/** From here on new connections are about to be dropped. */
const fullTable = 0.95;

function* kernel({ sysctls }: MachineHealth): Iterable<Finding> {
  if (sysctls['net.ipv4.ip_forward'] === '0') {
    yield {
      check: 'ip-forward',
      severity: 'warning',
      object: 'net.ipv4.ip_forward',
      problem: 'The kernel forwards no packets, so pods reach nothing beyond this machine',
      remedy: 'Set it to 1 (sysctl -w net.ipv4.ip_forward=1, and a file in /etc/sysctl.d)',
    };
  }
  const bridge = sysctls['net.bridge.bridge-nf-call-iptables'];
  // Without the module most network plugins do without it; with it, 0 breaks services between pods of a node.
  if (bridge === '0') {
    yield {
      check: 'bridge-netfilter',
      severity: 'warning',
      object: 'net.bridge.bridge-nf-call-iptables',
      problem: 'Packets between pods of this node pass the rules of services by',
      remedy: 'Set it to 1 (sysctl -w net.bridge.bridge-nf-call-iptables=1, and a file in /etc/sysctl.d)',
    };
  }
  const [count, max] = [
    Number(sysctls['net.netfilter.nf_conntrack_count']),
    Number(sysctls['net.netfilter.nf_conntrack_max']),
  ];
  if (max > 0 && count >= max * fullTable) {
    yield {
      check: 'conntrack',
      severity: 'warning',
      object: 'net.netfilter.nf_conntrack_max',
      problem: `The kernel follows ${count} of at most ${max} connections; new ones are about to be dropped`,
      remedy: 'Raise it, or let kube-proxy do so (conntrack.maxPerCore)',
    };
  }
}
