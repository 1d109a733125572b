/** The agent under measurement: a process of the built executable with its log and its two HTTP ports. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { AgentLog } from './agent-log.ts';
import { now } from './measure.ts';
import { cpuSeconds, residentMib } from './process-usage.ts';

export interface AgentStart {
  readonly program: string;
  readonly flags: readonly string[];
  readonly logFile: string;
  readonly healthPort: number;
  readonly podsPort: number;
  readonly env?: NodeJS.ProcessEnv;
  readonly stop: AbortSignal;
}

/** As much of a pod in `/pods` as the bench looks at. */
interface ListedPod {
  readonly status?: { readonly phase?: string };
}

const startLimitMs = 20_000;
const stopLimitMs = 15_000;
/** A question costs the agent about half a millisecond, which must not become what is measured. */
const pollMs = 10;

export class AgentProcess {
  readonly log: AgentLog;
  /** Epoch milliseconds of the moment just before the process was made. */
  readonly startedAt: number;
  readonly #child: ChildProcess;
  readonly #start: AgentStart;
  #ended = false;

  constructor(start: AgentStart) {
    this.#start = start;
    const log = openSync(start.logFile, 'w');
    this.startedAt = now();
    // A process group of its own: Ctrl-C at the terminal reaches it only through the bench.
    this.#child = spawn(start.program, start.flags, {
      detached: true,
      stdio: ['ignore', log, log],
      env: { ...process.env, ...start.env },
    });
    this.#child.on('error', () => {});
    closeSync(log);
    this.log = new AgentLog(start.logFile);
  }

  get running(): boolean {
    return this.#child.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  cpuSeconds(): number {
    return cpuSeconds(this.#child.pid ?? 0);
  }

  residentMib(): number {
    return residentMib(this.#child.pid ?? 0);
  }

  /** Seconds from the start of the process to the first `ok` from /healthz. */
  async healthy(): Promise<number> {
    const url = `http://127.0.0.1:${this.#start.healthPort}/healthz`;
    return await this.#since(async () => (await fetch(url)).ok);
  }

  /** Seconds from the start of the process until /pods tells of `count` running pods. */
  async podsRunning(count: number): Promise<number> {
    const url = `http://127.0.0.1:${this.#start.podsPort}/pods`;
    return await this.#since(async () => {
      const { items } = (await (await fetch(url)).json()) as { items: readonly ListedPod[] };
      return items.filter(({ status }) => status?.phase === 'Running').length >= count;
    });
  }

  /** Seconds until the whole answer to a question at the read-only port is there. */
  async scrape(path: string): Promise<number> {
    const { podsPort, stop } = this.#start;
    const before = now();
    const answer = await fetch(`http://127.0.0.1:${podsPort}${path}`, { signal: stop });
    const text = await answer.arrayBuffer();
    if (!answer.ok || text.byteLength === 0) throw new Error(`${path} answered ${answer.status}`);
    return (now() - before) / 1000;
  }

  async #since(reached: () => Promise<boolean>): Promise<number> {
    const { stop, logFile } = this.#start;
    while (!(await reached().catch(() => false))) {
      stop.throwIfAborted();
      if (!this.running || now() - this.startedAt > startLimitMs) {
        const end = readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-5).join('\n');
        throw new Error(
          `the agent ${this.running ? 'did not get ready' : 'ended'}; the end of its log:\n${end}`,
        );
      }
      await pause(pollMs);
    }
    return (now() - this.startedAt) / 1000;
  }

  /** Ends the process, by KILL when it ignores the first signal; its pods stay. Safe to repeat. */
  async end(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    if (this.running) {
      const ended = once(this.#child, 'exit');
      this.#child.kill(signal);
      const late = setTimeout(() => this.#child.kill('SIGKILL'), stopLimitMs);
      await ended;
      clearTimeout(late);
    }
    if (!this.#ended) this.log.close();
    this.#ended = true;
  }
}
