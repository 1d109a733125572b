/**
 * What a run left behind on the machine: the difference between two looks at the kernel's own lists.
 * Only kinds of things that an agent, a runtime or a pod network makes are looked at, so that other
 * work on the machine is not blamed.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram, runCommand } from '../../scripts/machine/command.ts';
import { mountsBelow, readProcesses } from '../../scripts/machine/teardown.ts';

/** Names of things by kind; what a kind holds is whatever identifies one thing for good. */
export interface MachineState {
  processes: ReadonlySet<string>;
  mounts: ReadonlySet<string>;
  cgroups: ReadonlySet<string>;
  interfaces: ReadonlySet<string>;
  rules: ReadonlySet<string>;
  files: ReadonlySet<string>;
}

const nouns: Record<keyof MachineState, string> = {
  processes: 'process',
  mounts: 'mount',
  cgroups: 'cgroup',
  interfaces: 'network interface',
  rules: 'iptables rule',
  files: 'file',
};

/** One line for each thing that is in `after` and was not in `before`, e.g. `mount /run/x`. */
export function leftovers(before: MachineState, after: MachineState): string[] {
  return (Object.keys(nouns) as (keyof MachineState)[]).flatMap((kind) =>
    [...after[kind]].filter((name) => !before[kind].has(name)).map((name) => `${nouns[kind]} ${name}`),
  );
}

const ownMount = /kubelet|kts-|\/netns\/|containerd/;
const ownCgroup = /\/(kubepods|kubelet-ts|k8s\.io|default)[^/]*(\/|$)/;
const ownInterface = /^(kts-.*|veth[0-9a-f]{8})$/;
const ownRule = /CNI-|kubelet-ts/;
const ownProcess = /containerd|kubelet|(^|\/)pause( |$)/;

/** Mount points that look like an agent's, a runtime's or a test's, from `/proc/self/mountinfo`. */
export function interestingMounts(mountinfo: string): string[] {
  return mountsBelow(mountinfo, '').filter((path) => ownMount.test(path));
}

function names(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory).map((name) => join(directory, name)) : [];
}

function cgroupsBelow(directory: string, depth: number): string[] {
  if (depth === 0) return [];
  try {
    return readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(directory, entry.name))
      .flatMap((path) => [path, ...cgroupsBelow(path, depth - 1)]);
  } catch {
    return []; // It went away meanwhile.
  }
}

/** An entry in the environment tells who started a process, also after its parent has gone. */
function startedBy(pid: number, marker: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(marker);
  } catch {
    return false;
  }
}

/**
 * The machine as it is now. `marker` is a `NAME=value` of the environment that the run gives to all that
 * it starts; a process counts when it has it or when it is a runtime's or an agent's by its command.
 */
export async function readMachineState(marker: string): Promise<MachineState> {
  const saved = findProgram('iptables-save') === undefined ? '' : await runCommand('iptables-save', []);
  const self = new Set([process.pid, process.ppid]);
  return {
    processes: new Set(
      readProcesses()
        .filter(
          ({ pid, command }) =>
            !self.has(pid) && (startedBy(pid, marker) || ownProcess.test(command[0] ?? '')),
        )
        .map(({ pid, started, command }) => `${pid} (${command.join(' ')}), started at tick ${started}`),
    ),
    mounts: new Set(interestingMounts(readFileSync('/proc/self/mountinfo', 'utf8'))),
    cgroups: new Set(cgroupsBelow('/sys/fs/cgroup', 8).filter((path) => ownCgroup.test(path))),
    interfaces: new Set(readdirSync('/sys/class/net').filter((name) => ownInterface.test(name))),
    rules: new Set(saved.split('\n').filter((line) => line.startsWith('-A') && ownRule.test(line))),
    files: new Set([
      ...names('/run/netns'),
      ...names('/run/containerd/s'),
      ...names('/var/lib/cni/results'),
      ...names('/var/log/containers'),
    ]),
  };
}
