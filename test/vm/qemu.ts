/**
 * One run of the virtual machine: boots, runs a command as root in the project, passes its output on, and ends the
 * emulator by its process id whatever happens. What the machine writes to its disks is gone afterwards, unless it is
 * given disks to keep.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import type { BaseImage } from './base-image.ts';
import { cpioArchive } from './cpio-archive.ts';

/** What to run, on what. */
export interface VirtualMachineRun {
  base: BaseImage;
  /** Raw ext4 images: the root disk, then the project's. */
  disks: readonly string[];
  /** Whether writes go to the disks themselves instead of a copy that is thrown away. */
  keepWrites: boolean;
  /** Absolute path of the checkout, the same inside as outside. */
  project: string;
  /** Shell script to run in the machine. */
  script: string;
  /** Receives what the script and its children print. */
  output: Writable;
  /** From power-on to the script's end. */
  timeLimitMs: number;
  /** Ends the machine at once; the run then rejects with the signal's reason. */
  signal: AbortSignal;
}

/** How long things took, and how the script ended. */
export interface VirtualMachineResult {
  exitCode: number;
  accelerator: 'kvm' | 'tcg';
  bootMs: number;
  totalMs: number;
}

/** The machine ended, or had to be ended, before its script did. Carries the end of its console. */
export class VirtualMachineError extends Error {
  override readonly name = 'VirtualMachineError';
}

/** Where the emulator's loadable parts lie, the emulation itself among them. */
const modulesFolder = 'usr/lib/x86_64-linux-gnu/qemu';

/** With working hardware virtualisation a boot takes two seconds; where it is broken, nothing ever appears. */
const kvmBootLimitMs = 20_000;

/**
 * Runs the script by hardware virtualisation where that works, by emulation otherwise.
 * @throws VirtualMachineError when the machine does not boot, ends early, or exceeds the time limit
 */
export async function runVirtualMachine(run: VirtualMachineRun): Promise<VirtualMachineResult> {
  if (canOpenKvm()) {
    const result = await attempt(run, 'kvm');
    if (result !== 'not booted') return result;
    console.error('vm: /dev/kvm is there but does not work; going on by emulation');
  }
  const result = await attempt(run, 'tcg');
  if (result === 'not booted') throw new VirtualMachineError('The virtual machine did not boot.');
  return result;
}

async function attempt(
  run: VirtualMachineRun,
  accelerator: 'kvm' | 'tcg',
): Promise<VirtualMachineResult | 'not booted'> {
  run.signal.throwIfAborted();
  const folder = mkdtempSync(join(tmpdir(), 'kubelet-vm-'));
  const started = performance.now();
  const elapsed = () => Math.round(performance.now() - started);
  const outputServer = createServer((socket) => socket.pipe(run.output, { end: false }));
  const resultServer = createServer();
  let emulator: ChildProcess | undefined;
  const { promise, resolve, reject } = Promise.withResolvers<VirtualMachineResult | 'not booted'>();
  const fail = (what: string, cause?: unknown) =>
    reject(new VirtualMachineError(`${what}${consoleEnd(folder)}`, { cause }));
  const abort = () => reject(run.signal.reason);
  run.signal.addEventListener('abort', abort);
  const timeLimit = setTimeout(
    () => fail(`The command did not end within ${run.timeLimitMs / 1000} s.`),
    run.timeLimitMs,
  );
  const bootLimit = setTimeout(() => resolve('not booted'), kvmBootLimitMs);
  if (accelerator === 'tcg') clearTimeout(bootLimit);
  let bootMs = 0;
  let exitCode: number | undefined;
  let output: Socket | undefined;
  outputServer.on('connection', (socket) => (output = socket));
  resultServer.on('connection', (socket) => {
    onLine(socket, (line) => {
      if (line === 'ready') {
        clearTimeout(bootLimit);
        bootMs = elapsed();
      }
      const code = /^exit (\d+)$/.exec(line)?.[1];
      if (code === undefined) return;
      exitCode = Number(code);
      const result = { exitCode, accelerator, bootMs, totalMs: elapsed() };
      // Output and result are two channels: what is left of the first is read until the emulator's end closes it.
      output?.on('close', () => resolve(result));
      emulator?.kill('SIGKILL');
    });
  });
  try {
    await Promise.all([listen(outputServer, folder, 'output'), listen(resultServer, folder, 'result')]);
    writeFileSync(
      join(folder, 'initramfs'),
      Buffer.concat([readFileSync(run.base.initramfs), runArchive(run)]),
    );
    const command = emulatorCommand(run, accelerator, folder);
    emulator = spawn(command.file, command.args, {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, TMPDIR: run.base.scratch, QEMU_MODULE_DIR: run.base.tools.path(modulesFolder) },
    });
    emulator.on('error', (cause) => fail(`The emulator did not start: ${cause.message}`, cause));
    emulator.on('exit', (code, signal) => {
      if (exitCode !== undefined) return;
      if (accelerator === 'kvm' && bootMs === 0) resolve('not booted');
      else fail(`The virtual machine ended before its command did (${signal ?? code}).`);
    });
    return await promise;
  } finally {
    clearTimeout(timeLimit);
    clearTimeout(bootLimit);
    run.signal.removeEventListener('abort', abort);
    await ended(emulator);
    output?.destroy();
    outputServer.close();
    resultServer.close();
    rmSync(folder, { recursive: true });
  }
}

/** The archive to append for one run: what `/run/vm` holds in the machine. */
function runArchive({ project, script }: VirtualMachineRun): Buffer {
  const own = (path: string) => readFileSync(join(import.meta.dirname, path));
  return cpioArchive([
    { path: 'vm' },
    { path: 'vm/init', content: own('init.sh') },
    { path: 'vm/stripped-sources.mjs', content: own('inside/stripped-sources.mjs') },
    { path: 'vm/project', content: Buffer.from(`${project}\n`) },
    { path: 'vm/command', content: Buffer.from(script) },
  ]);
}

/** Kernel parameters: cgroup v2 alone, a way out instead of a hang, and what makes emulation quicker. */
const kernelParameters =
  'console=ttyS0 quiet loglevel=4 panic=-1 rdinit=/init cgroup_no_v1=all psi=1 hugepages=16 ' +
  'random.trust_cpu=on mitigations=off tsc=reliable no_timer_check';

/** The emulator dies with this process, even when this process is killed. */
function emulatorCommand(run: VirtualMachineRun, accelerator: 'kvm' | 'tcg', folder: string) {
  const { tools, kernel } = run.base;
  const quoted = (path: string) => path.replaceAll(',', ',,');
  const snapshot = run.keepWrites ? 'off' : 'on';
  const options: [name: string, value: string][] = [
    ['machine', 'q35'],
    ['accel', accelerator === 'kvm' ? 'kvm' : 'tcg,thread=multi,tb-size=1024'],
    ['cpu', accelerator === 'kvm' ? 'host' : 'max'],
    ['smp', '2'],
    ['m', '3G'],
    ['display', 'none'],
    ['L', tools.path('usr/share/qemu')],
    ['L', tools.path('usr/share/seabios')],
    ['kernel', kernel],
    ['initrd', join(folder, 'initramfs')],
    ['append', kernelParameters],
    ['serial', `file:${quoted(join(folder, 'console'))}`],
    ['netdev', 'user,id=net,restrict=on'],
    ['device', 'virtio-net-pci,netdev=net,romfile='],
    ['device', 'virtio-serial-pci'],
  ];
  for (const name of ['output', 'result']) {
    options.push(['chardev', `socket,id=${name},path=${quoted(join(folder, name))}`]);
    options.push(['device', `virtserialport,chardev=${name},name=${name}`]);
  }
  for (const [index, path] of run.disks.entries()) {
    const file = `file=${quoted(path)},format=raw,cache=unsafe,snapshot=${snapshot}`;
    options.push(['drive', `if=none,id=disk${index},${file}`]);
    options.push(['device', `virtio-blk-pci,drive=disk${index}`]);
  }
  const args = options.flatMap(([name, value]) => [`-${name}`, value]);
  const emulator = tools.command('usr/bin/qemu-system-x86_64', [
    '-nodefaults',
    '-no-user-config',
    '-no-reboot',
    ...args,
  ]);
  return { file: 'setpriv', args: ['--pdeathsig', 'KILL', emulator.file, ...emulator.args] };
}

function canOpenKvm(): boolean {
  try {
    accessSync('/dev/kvm', constants.R_OK | constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function listen(server: Server, folder: string, name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(join(folder, name), resolve);
  });
}

function onLine(socket: Socket, callback: (line: string) => void): void {
  let rest = '';
  socket.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) callback(line);
  });
}

/** Kills the emulator when it still runs, and waits for it to be gone. */
async function ended(emulator: ChildProcess | undefined): Promise<void> {
  if (emulator?.pid === undefined || emulator.exitCode !== null || emulator.signalCode !== null) return;
  const gone = new Promise((resolve) => emulator.once('exit', resolve));
  emulator.kill('SIGKILL');
  await gone;
}

function consoleEnd(folder: string): string {
  const path = join(folder, 'console');
  const lines = existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n').slice(-30) : [];
  return lines.length === 0 ? '' : `\nThe end of its console:\n${lines.join('\n')}`;
}
