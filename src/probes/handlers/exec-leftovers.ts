/**
 * What an exec probe leaves in the container when its time is up: runtimes kill the process they started and
 * nothing else, so that its children would stay, one more after each run.
 *
 * While the probe runs, its process is looked for: the one that has entered the container from outside since
 * the probe began. What descends from it and what is in its session is the probe's; everything else is the
 * container's or somebody else's and is never touched. When it cannot be told which process is the probe's,
 * nothing is killed.
 */
import { basename } from 'node:path';
import { type Clock, sleep } from '../../concurrency/clock.ts';
import type { ProcessInfo } from '../../linux/processes.ts';

/** The processes of a container, and the end of one. */
export interface ContainerProcesses {
  /** Every process in the container's cgroup. */
  list(containerId: string): Promise<readonly ProcessInfo[]>;
  /** Kills exactly this process, if it is still there. */
  kill(process: ProcessInfo): Promise<unknown>;
  /** Now, as {@link ProcessInfo.startTicks} counts. */
  ticksNow(): number;
}

/** When the probe's processes are looked at, as a part of its time. */
const looksAt = [0.5, 0.9];

/** Processes may fork while they are being killed. */
const killRounds = 5;
const killPauseMs = 20;

export class ExecLeftovers {
  readonly #processes: ContainerProcesses;
  readonly #clock: Clock;
  readonly #containerId: string;
  readonly #command: readonly string[];
  readonly #since: number;
  readonly #cancels: (() => void)[];
  /** Start of each process that is known to be the probe's, by pid. */
  readonly #ours = new Map<number, number>();
  /** Sessions of the probe. */
  readonly #sessions = new Set<number>();

  /** To be made right before the probe's process is asked for; {@link end} it in any case. */
  constructor(options: {
    processes: ContainerProcesses;
    clock: Clock;
    containerId: string;
    command: readonly string[];
    timeoutMs: number;
  }) {
    this.#processes = options.processes;
    this.#clock = options.clock;
    this.#containerId = options.containerId;
    this.#command = options.command;
    this.#since = options.processes.ticksNow();
    this.#cancels = looksAt.map((part) =>
      this.#clock.after(part * options.timeoutMs, () => void this.look().catch(() => {})),
    );
  }

  end(): void {
    for (const cancel of this.#cancels) cancel();
  }

  /** Learns which processes are the probe's now. */
  async look(): Promise<void> {
    const processes = await this.#processes.list(this.#containerId);
    const root = probeProcess(processes, this.#command, this.#since);
    if (root) {
      this.#ours.set(root.pid, root.startTicks);
      // A session that was there before would be the container's.
      if (root.session === root.pid) this.#sessions.add(root.session);
    }
    this.#claim(processes);
  }

  /** Kills what is left of the probe. Resolves with how many processes that were; never rejects. */
  async kill(): Promise<number> {
    let killed = 0;
    if (this.#ours.size === 0) return killed;
    try {
      for (let round = 0; round < killRounds; round++) {
        const left = this.#claim(await this.#processes.list(this.#containerId));
        if (left.length === 0) break;
        for (const process of left) if (await this.#processes.kill(process)) killed++;
        await sleep(this.#clock, killPauseMs);
      }
    } catch {
      // The container is ending, and with it everything in it.
    }
    return killed;
  }

  /** Adds what belongs to what is known already; answers all of it that still runs. */
  #claim(processes: readonly ProcessInfo[]): ProcessInfo[] {
    const byPid = new Map(processes.map((process) => [process.pid, process]));
    const isOurs = ({ pid, startTicks }: ProcessInfo) => this.#ours.get(pid) === startTicks;
    for (let grown = true; grown; ) {
      grown = false;
      for (const process of processes) {
        if (isOurs(process) || process.startTicks < this.#since) continue;
        const parent = byPid.get(process.parent);
        if (!(parent && isOurs(parent)) && !this.#sessions.has(process.session)) continue;
        this.#ours.set(process.pid, process.startTicks);
        grown = true;
      }
    }
    return processes.filter((process) => isOurs(process) && !process.isZombie);
  }
}

/** How long after it was asked for the probe's process may start and still be taken for it unnamed. */
const promptTicks = 50;

/**
 * The process that was started in the container from outside since then and carries the probe's command.
 * Runtimes give it a session of its own. The first process is the container itself.
 *
 * A shell may have become its last command. Then it is the only process with a parent outside, and only in
 * a pid namespace of the container's own: in a shared or the host's, orphans of the container have such
 * parents as well.
 */
function probeProcess(
  processes: readonly ProcessInfo[],
  command: readonly string[],
  since: number,
): ProcessInfo | undefined {
  const pids = new Set(processes.map(({ pid }) => pid));
  const [main, ...entered] = processes
    .filter(({ parent }) => !pids.has(parent))
    .sort((a, b) => a.startTicks - b.startTicks || a.pid - b.pid);
  const recent = entered.filter(({ pid, session, startTicks }) => startTicks >= since && session === pid);
  const named = recent.filter((process) => runs(process.command, command));
  if (named.length > 0) return named.length === 1 ? named[0] : undefined;
  const [only, another] = recent;
  const isPrompt = only !== undefined && only.startTicks <= since + promptTicks;
  return isPrompt && !another && main?.isNamespaceInit ? only : undefined;
}

/** True for the command itself, and for the interpreter of the script that it names. */
function runs(shown: readonly string[], [program = '', ...args]: readonly string[]): boolean {
  const [last = '', ...shownArgs] = shown.slice(-1 - args.length);
  return basename(last) === basename(program) && shownArgs.join('\0') === args.join('\0');
}
