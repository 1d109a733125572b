/**
 * What the agent itself costs, whatever the machine is busy with: the runtime is a fake that answers at
 * once, so processor time and memory are the agent's alone. Compares builds and settings in turn.
 *
 *     node bench/own-cost.ts [--pods 100] [--rounds 3] [--idle SECONDS] [PROGRAM…]
 *
 * Needs root for cgroups, no containerd. A program is a built dist/kubelet, the checkout's own by default.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createOwnCgroup, removeOwnCgroup } from '../scripts/machine/own-cgroup.ts';
import { unmountBelow } from '../scripts/machine/teardown.ts';
import { systemClock } from '../src/concurrency/clock.ts';
import {
  type FakeRuntimeServer,
  startFakeRuntime,
} from '../test/fixtures/cri-runtime/fake-runtime-server.ts';
import { agentFlags, freePorts } from './agent-configuration.ts';
import { isGone, isStarted } from './agent-log.ts';
import { AgentProcess } from './agent-process.ts';
import { Manifests } from './manifests.ts';
import { median } from './measure.ts';

const image = 'localhost/bench:1';
const limitMs = 180_000;
/** What trails behind an answer (records, logs) belongs to it. */
const trailMs = 300;

interface Cost {
  /** Processor seconds. */
  readonly start: number;
  readonly end: number;
  /** Per cent of one core; NaN when it was not asked for. */
  readonly idle: number;
  /** MiB of resident memory. */
  readonly memoryBefore: number;
  readonly memoryWithPods: number;
  /** Calls to the runtime for each pod. */
  readonly startCalls: number;
  readonly endCalls: number;
  readonly restartCalls: number;
  /** Seconds of a restart with all pods, from the start of the process to the status of the last pod. */
  readonly restart: number;
  /** Processor seconds of that restart. */
  readonly restartCpu: number;
}

interface Work {
  readonly startAgent: () => AgentProcess;
  readonly manifests: Manifests;
  readonly server: FakeRuntimeServer;
  readonly pods: number;
  readonly idleSeconds: number;
  readonly stop: AbortSignal;
}

/** One life: pods come, stay, are adopted by a new agent, go. */
async function live({ startAgent, manifests, server, pods, idleSeconds, stop }: Work): Promise<Cost> {
  let agent = startAgent();
  const wait = { count: pods, limitMs, stop };
  const spent = async (work: () => Promise<unknown>) => {
    agent.log.read();
    const [cpu, calls] = [agent.cpuSeconds(), server.runtime.calls.length];
    await work();
    await pause(trailMs, undefined, { signal: stop });
    const made = server.runtime.calls.length - calls;
    return { cpu: agent.cpuSeconds() - cpu, calls: made / pods };
  };
  await agent.healthy();
  await pause(1000, undefined, { signal: stop });
  const memoryBefore = agent.residentMib();
  const start = await spent(async () => {
    manifests.add(pods);
    await agent.log.times(isStarted, wait);
  });
  const before = agent.cpuSeconds();
  await pause(idleSeconds * 1000, undefined, { signal: stop });
  const idle = ((agent.cpuSeconds() - before) / idleSeconds) * 100;
  const memoryWithPods = agent.residentMib();
  await agent.end('SIGKILL');
  const callsBefore = server.runtime.calls.length;
  agent = startAgent();
  const restart = await agent.podsRunning(pods);
  const restartCpu = agent.cpuSeconds();
  await pause(trailMs, undefined, { signal: stop });
  const restartCalls = (server.runtime.calls.length - callsBefore) / pods;
  const end = await spent(async () => {
    manifests.removeAll();
    await agent.log.times(isGone, wait);
  });
  return {
    start: start.cpu,
    end: end.cpu,
    idle,
    memoryBefore,
    memoryWithPods,
    startCalls: start.calls,
    endCalls: end.calls,
    restartCalls,
    restart,
    restartCpu,
  };
}

async function measure(
  program: string,
  { pods, idleSeconds, stop }: { pods: number; idleSeconds: number; stop: AbortSignal },
): Promise<Cost> {
  const directory = mkdtempSync('/var/tmp/kubelet-ts-cost-');
  const cgroup = basename(directory);
  const server = await startFakeRuntime({ clock: systemClock, images: [image] });
  let agent: AgentProcess | undefined;
  try {
    createOwnCgroup(cgroup);
    const manifests = new Manifests(directory, image);
    const ports = await freePorts();
    const endpoint = `unix://${server.socket}`;
    const flags = agentFlags({ directory, cgroup, endpoint, ports, manifests: manifests.directory });
    const startAgent = (): AgentProcess => {
      agent = new AgentProcess({
        program,
        flags,
        logFile: join(directory, 'agent.log'),
        healthPort: ports.health,
        podsPort: ports.pods,
        stop,
      });
      return agent;
    };
    return await live({ startAgent, manifests, server, pods, idleSeconds, stop });
  } finally {
    await agent?.end();
    await server.close();
    await removeOwnCgroup(cgroup);
    await unmountBelow(directory);
    rmSync(directory, { recursive: true, force: true });
  }
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      pods: { type: 'string', default: '100' },
      rounds: { type: 'string', default: '3' },
      idle: { type: 'string', default: '0' },
    },
  });
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => stop.abort(new Error(`ended by ${name}`)));
  }
  const programs = positionals.length > 0 ? positionals : [join(import.meta.dirname, '../dist/kubelet')];
  const pods = Number(values.pods);
  const costs = new Map<string, Cost[]>(programs.map((program) => [program, []]));
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const [program, of] of costs) {
      const how = { pods, idleSeconds: Number(values.idle), stop: stop.signal };
      of.push(await measure(resolve(program), how));
    }
  }
  for (const [program, of] of costs) {
    const middle = (what: keyof Cost): number => median(of.map((cost) => cost[what]));
    console.log(`${program}: ${pods} pods, medians of ${of.length}`);
    console.log(`  CPU to start ${middle('start').toFixed(2)} s, to remove ${middle('end').toFixed(2)} s`);
    if (Number(values.idle) > 0) console.log(`  CPU when idle ${middle('idle').toFixed(2)} % of one core`);
    const memory = [middle('memoryBefore'), middle('memoryWithPods')].map((mib) => mib.toFixed(0));
    console.log(`  memory (RSS) before ${memory[0]} MiB, with pods ${memory[1]} MiB`);
    console.log(
      `  restart: all adopted after ${middle('restart').toFixed(3)} s, CPU ${middle('restartCpu').toFixed(2)} s`,
    );
    const calls = [middle('startCalls'), middle('restartCalls'), middle('endCalls')].map((count) =>
      count.toFixed(2),
    );
    console.log(
      `  calls to the runtime for each pod: ${calls[0]} to start, ${calls[1]} to adopt, ${calls[2]} to remove`,
    );
  }
}

try {
  await main();
} catch (error) {
  console.error(`own-cost: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
