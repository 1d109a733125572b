/**
 * A containerd of our own beside whatever runs on the machine: own root, state, socket, configuration
 * and pod network, all below one directory. Starting it again adopts the one that runs; stopping it
 * leaves no process, mount, interface, rule or cgroup behind, also after a crash of anything involved.
 *
 * From a shell: `node scripts/machine/private-containerd.ts start|stop --directory DIR`.
 */
import { spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { findProgram, fullPath, runCommand } from './command.ts';
import { parseContainerdRelease, renderContainerdConfig } from './containerd-config.ts';
import { listSandboxes, removeSandbox, runtimeComplaints, runtimeVersion } from './cri-calls.ts';
import { demoImages, importDemoImages } from './demo-images.ts';
import { findCniPlugins } from './install-packages.ts';
import {
  choosePodNetwork,
  currentRanges,
  forwardingDenied,
  type PodNetwork,
  removePodNetwork,
  renderNetworkConfiguration,
} from './pod-network.ts';
import {
  endProcess,
  killContainers,
  type ProcessEntry,
  readProcess,
  removeShimSockets,
  unmountBelow,
} from './teardown.ts';

export interface PrivateContainerdOptions {
  /** Absolute path, not on a tmpfs: images and snapshots live here. */
  directory: string;
  /** Sockets and what is gone after a boot; default `<directory>/state`. Must be short (socket paths). */
  state?: string;
  /** Directories searched for containerd, its shim, ctr and runc before PATH. */
  binaries?: readonly string[];
  /** Directories searched for CNI plugins before the usual ones. */
  cniPlugins?: readonly string[];
  /** Told what a person may want to know, e.g. that IP forwarding was switched on. */
  note?: (text: string) => void;
}

export interface PrivateContainerd {
  /** For `--container-runtime-endpoint`, e.g. `unix:///run/x/containerd.sock`. */
  endpoint: string;
  root: string;
  state: string;
  pid: number;
  /** e.g. `containerd 1.6.20~ds1`. */
  version: string;
  snapshotter: string;
  network: PodNetwork;
  logFile: string;
  /** True when it ran already. */
  adopted: boolean;
  /** Kills containers and containerd and removes every trace; `data` also removes images and the directory. */
  stop(options?: { data?: boolean }): Promise<void>;
}

/** What must be known to stop it after everything else is forgotten. */
interface Record {
  state: string;
  network: PodNetwork;
  snapshotter: string;
  /** Whether the machine forwarded packets before. */
  forwarded: boolean;
  containerd?: { pid: number; started: string };
}

const recordFile = (directory: string): string => join(directory, 'private-containerd.json');
const forwardingFile = '/proc/sys/net/ipv4/ip_forward';
const largestLog = 16 * 1024 * 1024;

function readRecord(directory: string): Record | undefined {
  try {
    return JSON.parse(readFileSync(recordFile(directory), 'utf8')) as Record;
  } catch {
    return undefined;
  }
}

function writeRecord(directory: string, record: Record): void {
  const file = recordFile(directory);
  writeFileSync(`${file}.new`, JSON.stringify(record));
  renameSync(`${file}.new`, file);
}

function recordedProcess(record: Record | undefined): ProcessEntry | undefined {
  if (record?.containerd === undefined) return undefined;
  const entry = readProcess(record.containerd.pid);
  return entry?.started === record.containerd.started ? entry : undefined;
}

/** CAP_SYS_RESOURCE is bit 24 of the effective set. */
function mayLowerOomScore(): boolean {
  const set = /^CapEff:\s*([0-9a-f]+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
  return (BigInt(`0x${set}`) & (1n << 24n)) !== 0n;
}

/** overlayfs where the file system below `directory` can hold one, else plain copies. */
async function chooseSnapshotter(directory: string): Promise<string> {
  const base = join(directory, 'overlay-test');
  const [lower, upper, work, merged] = ['lower', 'upper', 'work', 'merged'].map((name) => join(base, name));
  try {
    for (const path of [lower, upper, work, merged]) mkdirSync(path ?? '', { recursive: true });
    const layers = `lowerdir=${lower},upperdir=${upper},workdir=${work}`;
    await runCommand('mount', ['-t', 'overlay', 'overlay', '-o', layers, merged ?? '']);
    await runCommand('umount', [merged ?? '']);
    return 'overlayfs';
  } catch {
    return 'native';
  } finally {
    await unmountBelow(base);
    rmSync(base, { recursive: true, force: true });
  }
}

function required(name: string, first: readonly string[] | undefined): string {
  const file = findProgram(name, first);
  if (file === undefined) throw new Error(`private containerd: the program ${name} is not installed`);
  return file;
}

async function untilReady(endpoint: string, alive: () => boolean, logFile: string): Promise<void> {
  const deadline = Date.now() + 60_000;
  let reason = 'it did not answer';
  while (alive() && Date.now() < deadline) {
    try {
      const complaints = await runtimeComplaints(endpoint);
      if (complaints.length === 0) return;
      reason = complaints.join('; ');
    } catch (error) {
      reason = error instanceof Error ? error.message : String(error);
    }
    await pause(50);
  }
  const tail = readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-5).join('\n');
  const what = alive() ? `not ready within 60 s (${reason})` : 'ended at once';
  throw new Error(`private containerd: ${what}; the end of ${logFile}:\n${tail}`);
}

/** Starts it, or adopts the one that runs for the directory; resolves when runtime and network are ready. */
export async function startPrivateContainerd(options: PrivateContainerdOptions): Promise<PrivateContainerd> {
  const { directory, binaries, note = () => {} } = options;
  const state = options.state ?? join(directory, 'state');
  const root = join(directory, 'root');
  const socket = join(state, 'containerd.sock');
  const endpoint = `unix://${socket}`;
  const logFile = join(directory, 'containerd.log');
  if (socket.length > 100) throw new Error(`private containerd: ${socket} is too long for a socket's path`);
  for (const path of [root, state, join(directory, 'cni')]) mkdirSync(path, { recursive: true, mode: 0o711 });

  let record = readRecord(directory);
  if (record !== undefined && record.state !== state) {
    throw new Error(
      `private containerd: ${directory} belongs to one with its state in ${record.state}; stop that first`,
    );
  }
  const handle = async (
    from: Record,
    process: ProcessEntry,
    adopted: boolean,
  ): Promise<PrivateContainerd> => ({
    endpoint,
    root,
    state,
    pid: process.pid,
    version: await runtimeVersion(endpoint),
    snapshotter: from.snapshotter,
    network: from.network,
    logFile,
    adopted,
    stop: (how) => stopPrivateContainerd(directory, how),
  });

  const running = recordedProcess(record);
  if (record !== undefined && running !== undefined) {
    if (
      await runtimeVersion(endpoint).then(
        () => true,
        () => false,
      )
    )
      return await handle(record, running, true);
    note(`the private containerd (process ${running.pid}) does not answer and is started anew`);
    await endProcess(running, 5000);
  }

  const containerd = required('containerd', binaries);
  const runc = required('runc', binaries);
  const cniPlugins = findCniPlugins(options.cniPlugins);
  if (cniPlugins === undefined) throw new Error('private containerd: the CNI plugins are not installed');
  record ??= {
    state,
    network: choosePodNetwork(directory, currentRanges()),
    snapshotter: await chooseSnapshotter(directory),
    forwarded: readFileSync(forwardingFile, 'utf8').trim() === '1',
  };
  // The bridge plugin does it with the first pod; done here, it can be told and undone.
  if (readFileSync(forwardingFile, 'utf8').trim() !== '1') {
    note('IP forwarding (net.ipv4.ip_forward) is switched on for the pods; it was off');
    writeFileSync(forwardingFile, '1');
  }
  writeRecord(directory, record);
  writeFileSync(
    join(directory, 'cni/10-kubelet-ts.conflist'),
    renderNetworkConfiguration(record.network, {
      ipamDirectory: join(directory, 'ipam'),
      forwardingDenied: await forwardingDenied(),
    }),
  );
  const configFile = join(directory, 'config.toml');
  writeFileSync(
    configFile,
    renderContainerdConfig({
      release: parseContainerdRelease(await runCommand(containerd, ['--version'])),
      root,
      state,
      socket,
      sandboxImage: demoImages.pause,
      snapshotter: record.snapshotter,
      cniPlugins,
      cniConfiguration: join(directory, 'cni'),
      runc,
      runcState: join(state, 'runc'),
      restrictOomScore: !mayLowerOomScore(),
    }),
  );

  if (existsSync(logFile) && statSync(logFile).size > largestLog) renameSync(logFile, `${logFile}.1`);
  const log = openSync(logFile, 'a');
  // A process group of its own: Ctrl-C at the terminal must reach it only through us.
  const child = spawn(containerd, ['--config', configFile], {
    detached: true,
    stdio: ['ignore', log, log],
    env: {
      ...process.env,
      PATH: `${[...(binaries ?? []), dirname(containerd)].join(':')}:${fullPath}`,
      NOTIFY_SOCKET: undefined,
    },
  });
  closeSync(log);
  let ended = false;
  child.once('exit', () => {
    ended = true;
  });
  child.once('error', () => {
    ended = true;
  });
  child.unref();
  const entry = child.pid === undefined ? undefined : readProcess(child.pid);
  if (entry === undefined) throw new Error(`private containerd: ${containerd} did not start; see ${logFile}`);
  writeRecord(directory, { ...record, containerd: { pid: entry.pid, started: entry.started } });
  await untilReady(endpoint, () => !ended, logFile);
  return await handle(record, entry, false);
}

/**
 * Stops the private containerd of a directory, whether or not it still runs, and removes every trace of
 * its containers. Images stay for the next start unless `data` is given; pods stay in its list, not
 * ready, if it had crashed before. Safe to repeat.
 */
export async function stopPrivateContainerd(
  directory: string,
  options: { data?: boolean } = {},
): Promise<void> {
  const record = readRecord(directory);
  const state = record?.state ?? join(directory, 'state');
  const running = recordedProcess(record);
  let sandboxes: string[] = [];
  if (running !== undefined) {
    sandboxes = await forgetSandboxes(`unix://${join(state, 'containerd.sock')}`);
    await endProcess(running, 5000);
  }
  await killContainers(join(state, 'containerd.sock'), join(state, 'runc'));
  removeShimSockets(state);
  await unmountBelow(state);
  await unmountBelow(directory);
  if (record !== undefined) {
    await removePodNetwork(record.network, sandboxes);
    await restoreForwarding(record);
  }
  rmSync(state, { recursive: true, force: true });
  rmSync(join(directory, 'ipam'), { recursive: true, force: true });
  rmSync(recordFile(directory), { force: true });
  if (options.data === true) rmSync(directory, { recursive: true, force: true });
}

/**
 * Lets containerd itself remove its pods, so that it does not list dead ones when it starts again. What
 * fails here (it may hang or be broken) is killed afterwards anyway. Resolves to the sandboxes that were there.
 */
async function forgetSandboxes(endpoint: string): Promise<string[]> {
  const queue = await listSandboxes(endpoint).catch(() => []);
  const ids = queue.map(({ id }) => id);
  const worker = async (): Promise<void> => {
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      await removeSandbox(endpoint, next.id).catch(() => {});
    }
  };
  await Promise.race([
    Promise.all([worker(), worker(), worker(), worker()]),
    pause(60_000, undefined, { ref: false }),
  ]);
  return ids;
}

/** Off again if it was off before, unless another bridge has come that may need it. */
async function restoreForwarding(record: Record): Promise<void> {
  if (record.forwarded || readFileSync(forwardingFile, 'utf8').trim() !== '1') return;
  const bridges = await runCommand('ip', ['-o', 'link', 'show', 'type', 'bridge']);
  if (bridges.trim() === '') writeFileSync(forwardingFile, '0');
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      directory: { type: 'string' },
      state: { type: 'string' },
      images: { type: 'boolean', default: false },
      data: { type: 'boolean', default: false },
    },
  });
  const [action] = positionals;
  const { directory } = values;
  if (directory === undefined || (action !== 'start' && action !== 'stop')) {
    console.error('usage: node scripts/machine/private-containerd.ts start|stop --directory DIR');
    console.error(
      '  start: [--state DIR] [--images]   prints one JSON line; --images imports the demo images',
    );
    console.error('  stop:  [--data]                   --data also removes images and DIR itself');
    process.exitCode = 2;
    return;
  }
  if (action === 'stop') {
    await stopPrivateContainerd(directory, { data: values.data });
    return;
  }
  const started = await startPrivateContainerd({
    directory,
    ...(values.state === undefined ? {} : { state: values.state }),
    note: (text) => console.error(text),
  });
  if (values.images) {
    await importDemoImages({ endpoint: started.endpoint, directory, snapshotter: started.snapshotter });
  }
  console.log(JSON.stringify(started));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main();
