/** What would keep the agent from working here, found before anything is touched. */
import { parseCpuSet } from '../config/cpu-set.ts';
import type { MachineFacts } from './node-facts.ts';

/** What the configuration insists on. */
export interface PreflightSettings {
  readonly failOnSwap: boolean;
  readonly failOnCgroupV1: boolean;
  /** `reservedSystemCPUs` */
  readonly reservedCpus: readonly number[] | undefined;
}

/** The machine does not fit the configuration; each problem names its remedy. */
export class PreflightError extends Error {
  override readonly name = 'PreflightError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

/**
 * Everything that keeps the agent from working on this machine, each with its remedy; empty when nothing
 * does. `uid` is that of the process. Pure.
 */
export function preflightProblems(facts: MachineFacts, settings: PreflightSettings, uid: number): string[] {
  const problems: string[] = [];
  if (uid !== 0) {
    problems.push(
      'The agent must run as root: it makes cgroups and mounts. Start it with sudo or as a system service.',
    );
  }
  if (facts.cgroupVersion === 1 && settings.failOnCgroupV1) {
    problems.push(
      'This machine uses cgroup v1, which Kubernetes has deprecated. Boot it with cgroup v2 ' +
        '(kernel argument systemd.unified_cgroup_hierarchy=1), or set failCgroupV1: false in the --config file.',
    );
  }
  if (facts.swaps.length > 0 && settings.failOnSwap) {
    const areas = facts.swaps.map(({ path }) => path).join(', ');
    problems.push(
      `Swap is on (${areas}). Turn it off (swapoff -a, and remove it from /etc/fstab), ` +
        'or allow it with failSwapOn: false in the --config file or --fail-swap-on=false.',
    );
  }
  const online = parseCpuSet(facts.onlineCpus) ?? [];
  const absent = (settings.reservedCpus ?? []).filter((cpu) => !online.includes(cpu));
  if (absent.length > 0) {
    problems.push(
      `reservedSystemCPUs lists CPU ${absent.join(', ')}, but this machine has only ${facts.onlineCpus} online. ` +
        'Correct reservedSystemCPUs in the --config file, or --reserved-cpus.',
    );
  }
  return problems;
}
