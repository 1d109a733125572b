/**
 * Takes down what a containerd leaves running and mounted, by what the kernel says rather than by what
 * containerd remembers: it works after a crash at any point, and again after itself.
 */
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runCommand } from './command.ts';

/** Processes, as of one look at /proc. */
export interface ProcessEntry {
  pid: number;
  parent: number;
  /** Start time in clock ticks since boot: with the pid, it names a process for ever. */
  started: string;
  command: string[];
}

/** One process, or undefined when it is gone (a zombie counts as gone). */
export function readProcess(pid: number): ProcessEntry | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
    return { pid, parent: Number(fields[1]), started: fields[19] ?? '', command };
  } catch {
    return undefined;
  }
}

/** Every process of the machine. */
export function readProcesses(): ProcessEntry[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readProcess(Number(name)) ?? []);
}

/** The roots and everything below them. */
export function withDescendants(
  all: readonly ProcessEntry[],
  roots: readonly ProcessEntry[],
): ProcessEntry[] {
  const found = new Set(roots);
  let grew = true;
  while (grew) {
    grew = false;
    const pids = new Set([...found].map(({ pid }) => pid));
    for (const entry of all) {
      if (!found.has(entry) && pids.has(entry.parent)) {
        found.add(entry);
        grew = true;
      }
    }
  }
  return [...found];
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It is gone already.
  }
}

/** Resolves to true when all of them are gone before the time limit (milliseconds). */
export async function waitUntilGone(entries: readonly ProcessEntry[], limit: number): Promise<boolean> {
  const deadline = Date.now() + limit;
  const alive = (): boolean => entries.some(({ pid, started }) => readProcess(pid)?.started === started);
  while (alive()) {
    if (Date.now() > deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return true;
}

/** TERM, then KILL after the grace time (milliseconds). */
export async function endProcess(entry: ProcessEntry, grace: number): Promise<void> {
  signal(entry.pid, 'SIGTERM');
  if (await waitUntilGone([entry], grace)) return;
  signal(entry.pid, 'SIGKILL');
  await waitUntilGone([entry], 5000);
}

/** Kills every process, this one aside, whose command or environment names a directory. */
export async function endProcessesOf(directory: string): Promise<void> {
  // One that is killed may have started another since it was looked for.
  for (let round = 0; round < 5; round++) {
    const doomed = readProcesses().filter((entry) => entry.pid !== process.pid && names(entry, directory));
    if (doomed.length === 0) return;
    for (const { pid } of doomed) signal(pid, 'SIGKILL');
    await waitUntilGone(doomed, 5000);
  }
}

function names({ pid, command }: ProcessEntry, directory: string): boolean {
  if (command.some((part) => part.includes(directory))) return true;
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(directory);
  } catch {
    return false; // It is gone.
  }
}

/** What the OCI runtime wrote about the containers of one containerd. */
export interface ContainerRecord {
  init: { pid: number; started: string };
  cgroups: string[];
}

type Json = Record<string, unknown>;

/** runc's `state.json` names a path in every hierarchy. */
export function parseRuncState(state: Json): ContainerRecord {
  return {
    init: { pid: Number(state.init_process_pid), started: String(state.init_process_start) },
    cgroups: Object.values((state.cgroup_paths ?? {}) as Record<string, string>),
  };
}

/** crun's `status` names the path within the hierarchies. */
export function parseCrunStatus(status: Json, mountPoints: readonly string[]): ContainerRecord {
  const path = status['cgroup-path'];
  return {
    init: { pid: Number(status.pid), started: String(status['process-start-time']) },
    cgroups: typeof path === 'string' && path !== '' ? mountPoints.map((mount) => join(mount, path)) : [],
  };
}

function cgroupMountPoints(): string[] {
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  return lines.filter((line) => / - cgroup2? /.test(line)).map((line) => line.split(' ')[4] ?? '');
}

function list(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory) : [];
}

function readJson(file: string): Json {
  return JSON.parse(readFileSync(file, 'utf8')) as Json;
}

function readContainers(runtimeState: string): ContainerRecord[] {
  const mountPoints = cgroupMountPoints();
  return list(runtimeState).flatMap((namespace) =>
    list(join(runtimeState, namespace)).flatMap((id) => {
      const directory = join(runtimeState, namespace, id);
      try {
        if (existsSync(join(directory, 'state.json')))
          return [parseRuncState(readJson(join(directory, 'state.json')))];
        return [parseCrunStatus(readJson(join(directory, 'status')), mountPoints)];
      } catch {
        return []; // Being made or removed; its processes are found below their shim.
      }
    }),
  );
}

/** Cgroups that hold only what an agent or a runtime put there; empty ones above a container are removed. */
const ownParent = /^(k8s\.io|default|burstable|besteffort|pod[0-9a-f-]+|kubepods|kubelet-ts.*)$/;

/** Removes a cgroup with all below it, then the parents that were made for it. Busy ones stay. */
export function removeCgroup(path: string): void {
  removeCgroupTree(path);
  for (
    let parent = dirname(path);
    ownParent.test(parent.slice(parent.lastIndexOf('/') + 1));
    parent = dirname(parent)
  ) {
    try {
      rmdirSync(parent);
    } catch {
      return;
    }
  }
}

/** Removes a cgroup and all below it as far as the kernel lets it; true when nothing is left. */
export function removeCgroupTree(path: string): boolean {
  try {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      if (entry.isDirectory()) removeCgroupTree(join(path, entry.name));
    }
    rmdirSync(path);
    return true;
  } catch {
    return !existsSync(path);
  }
}

/** Kills shims and containers of the containerd that listened on `socket`; removes their cgroups. */
export async function killContainers(socket: string, runcState: string): Promise<void> {
  const containers = readContainers(runcState);
  const inits = new Set(containers.map(({ init }) => `${init.pid} ${init.started}`));
  const deadline = Date.now() + 15_000;
  for (;;) {
    const all = readProcesses();
    const shims = all.filter(
      ({ command }) => (command[0] ?? '').includes('containerd-shim') && command.includes(socket),
    );
    const orphans = all.filter(({ pid, started }) => inits.has(`${pid} ${started}`));
    const doomed = withDescendants(all, [...shims, ...orphans]);
    if (doomed.length === 0) break;
    if (Date.now() > deadline) {
      const names = doomed.map(({ pid, command }) => `${pid} (${command.join(' ')})`).join(', ');
      throw new Error(`these processes of ${socket} do not end although killed: ${names}`);
    }
    for (const { pid } of doomed.filter((entry) => !shims.includes(entry))) signal(pid, 'SIGKILL');
    for (const { pid } of shims) signal(pid, 'SIGKILL');
    await waitUntilGone(doomed, 500);
  }
  for (const { cgroups } of containers) for (const path of cgroups) removeCgroup(path);
  // Pods that were given no parent lived here; the last of them to go leaves it empty.
  for (const mountPoint of cgroupMountPoints()) {
    try {
      rmdirSync(join(mountPoint, 'k8s.io'));
    } catch {
      // There is none, or another containerd's pods are in it.
    }
  }
}

/** Mount points at or below a directory, the innermost last, from the text of `/proc/self/mountinfo`. */
export function mountsBelow(mountinfo: string, directory: string): string[] {
  return mountinfo
    .split('\n')
    .map((line) =>
      (line.split(' ')[4] ?? '').replace(/\\(\d{3})/g, (_, code: string) =>
        String.fromCharCode(Number.parseInt(code, 8)),
      ),
    )
    .filter((path) => path === directory || path.startsWith(`${directory}/`));
}

/** Unmounts everything at or below a directory. */
export async function unmountBelow(directory: string): Promise<void> {
  for (let round = 0; round < 3; round++) {
    const mounts = mountsBelow(readFileSync('/proc/self/mountinfo', 'utf8'), directory).reverse();
    if (mounts.length === 0) return;
    for (const path of mounts) {
      const busy = await runCommand('umount', [path]).then(
        () => false,
        () => true,
      );
      if (busy) await runCommand('umount', ['--lazy', path]).catch(() => {});
    }
  }
  const left = mountsBelow(readFileSync('/proc/self/mountinfo', 'utf8'), directory);
  if (left.length > 0) throw new Error(`still mounted after three rounds of umount: ${left.join(', ')}`);
}

/** Sockets that shims made outside the state directory, one for each task. */
export function removeShimSockets(state: string): void {
  const tasks = join(state, 'io.containerd.runtime.v2.task');
  for (const namespace of list(tasks)) {
    for (const id of list(join(tasks, namespace))) {
      for (const name of ['address', 'bootstrap.json']) {
        const file = join(tasks, namespace, id, name);
        const socket = existsSync(file)
          ? /unix:\/\/([^"\s]+)/.exec(readFileSync(file, 'utf8'))?.[1]
          : undefined;
        if (socket !== undefined) rmSync(socket, { force: true });
      }
    }
  }
  for (const directory of ['/run/containerd/s', '/run/containerd']) {
    try {
      rmdirSync(directory);
    } catch {
      return; // Another containerd's sockets are there, or it does not exist.
    }
  }
}
