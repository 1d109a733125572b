/**
 * The agent as a process: started in a group of its own, so that Ctrl-C reaches it only when we say so,
 * and remembered in a file, so that the next run can end one that a killed run left behind.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { endProcess, readProcess } from '../machine/teardown.ts';

export interface AgentProcess {
  /** Resolves when it has ended: exit code, or 128 and more for a signal. */
  ended: Promise<number>;
  running(): boolean;
  /** TERM, KILL after 15 s. */
  stop(): Promise<void>;
}

export interface AgentStart {
  program: string;
  flags: readonly string[];
  logFile: string;
  /** Where the process is remembered. */
  pidFile: string;
}

/** Starts the agent; rejects when the program cannot be run at all. */
export async function startAgent(start: AgentStart): Promise<AgentProcess> {
  const log = openSync(start.logFile, 'a');
  const child = spawn(start.program, start.flags, { detached: true, stdio: ['ignore', log, log] });
  closeSync(log);
  const ended = exitCode(child).finally(() => rmSync(start.pidFile, { force: true }));
  await once(child, 'spawn');
  const entry = readProcess(child.pid ?? 0);
  if (entry !== undefined) {
    writeFileSync(start.pidFile, JSON.stringify({ pid: entry.pid, started: entry.started }));
  }
  return {
    ended,
    running: () => child.exitCode === null && child.signalCode === null,
    stop: async () => {
      if (entry !== undefined && child.exitCode === null && child.signalCode === null)
        await endProcess(entry, 15_000);
      await ended;
    },
  };
}

function exitCode(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    child.once('error', () => resolve(127));
    child.once('exit', (code) => resolve(code ?? 128));
  });
}

/** Ends the agent that the file names, if that very process still runs. */
export async function endRememberedAgent(pidFile: string): Promise<boolean> {
  try {
    const { pid, started } = JSON.parse(readFileSync(pidFile, 'utf8')) as { pid: number; started: string };
    const entry = readProcess(pid);
    if (entry?.started !== started) return false;
    await endProcess(entry, 15_000);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(pidFile, { force: true });
  }
}

/** The last lines of a log, for a message about an agent that ended. */
export function logTail(file: string, lines = 20): string {
  try {
    return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
  } catch {
    return '';
  }
}
