/** The parts of the bench in their order: the floor and the agent take turns, so that both see one machine. */
import { setTimeout as pause } from 'node:timers/promises';
import type { AgentProcess } from './agent-process.ts';
import { containers } from './containers.ts';
import { inCluster } from './in-cluster.ts';
import { agentEnds, agentStarts, benchContainers } from './pods-at-once.ts';
import type { Results } from './results.ts';
import type { Stage } from './stage.ts';
import type { RowId } from './targets.ts';

export const parts = [
  'start',
  'idle',
  'one',
  'thirty',
  'restart',
  'hundred',
  'containers',
  'cluster',
] as const;
export type Part = (typeof parts)[number];

export interface Repetitions {
  readonly one: number;
  readonly thirty: number;
  readonly start: number;
  readonly restart: number;
  readonly idleSeconds: number;
  /** Pods of an API server, one at a time. */
  readonly cluster: number;
  /** Questions for each kind of statistics. */
  readonly scrapes: number;
}

export interface Play {
  readonly stage: Stage;
  readonly results: Results;
  readonly chosen: ReadonlySet<Part>;
  readonly times: Repetitions;
  readonly say: (text: string) => void;
}

/** What was just done must be over before memory and CPU count as idle. */
const settleMs = 5000;

export async function playParts(play: Play): Promise<void> {
  const { chosen, stage, say } = play;
  if (chosen.has('start')) {
    say('starting the process');
    await startOften(play);
  }
  let agent = stage.startAgent();
  await agent.healthy();
  if (chosen.has('idle')) {
    await idle(play, agent, { memory: 'memory0', cpu: 'idle0' });
  }
  if (chosen.has('one')) {
    say('one pod at a time');
    await oneByOne(play, agent);
  }
  if (chosen.has('thirty') || chosen.has('restart')) {
    say('30 pods at once');
    agent = await thirty(play, agent);
  }
  if (chosen.has('hundred')) {
    say('100 pods at once');
    await hundred(play, agent);
  }
  if (chosen.has('containers')) {
    say('commands and logs');
    await containers(stage, play.results, agent);
  }
  await agent.end();
  if (chosen.has('cluster')) {
    say('as a member of a cluster');
    await inCluster(play);
  }
}

/** Process starts, with one pod that is there already. */
async function startOften({ stage, results, times }: Play): Promise<void> {
  const first = stage.startAgent();
  await first.healthy();
  await agentStarts(stage, first, 1);
  await first.end();
  for (let round = 0; round < times.start; round++) {
    const agent = stage.startAgent();
    results.agent('startHealthy', await agent.healthy());
    results.agent('startPod', await agent.podsRunning(1));
    await agent.end();
  }
  const last = stage.startAgent();
  await last.podsRunning(1);
  await agentEnds(stage, last);
  await last.end();
}

async function oneByOne({ stage, results, times }: Play, agent: AgentProcess): Promise<void> {
  for (let round = 0; round < times.one; round++) {
    const floorStart = await stage.floor.start(1, stage.stop);
    const floorEnd = await stage.floor.end(stage.stop);
    const agentStart = await agentStarts(stage, agent, 1);
    const agentEnd = await agentEnds(stage, agent);
    // The first round warms up the runtime's and the agent's code and is thrown away.
    if (round === 0) continue;
    results.floor('oneRunning', floorStart.running);
    results.floor('oneKnown', floorStart.answered);
    results.floor('oneGone', floorEnd);
    results.agent('oneRunning', agentStart.running);
    results.agent('oneKnown', agentStart.answered);
    results.agent('oneGone', agentEnd.gone);
  }
}

/** 30 pods, and in the last round what else is measured while they run. */
async function thirty(play: Play, first: AgentProcess): Promise<AgentProcess> {
  const { stage, results, times, chosen } = play;
  const rounds = chosen.has('thirty') ? times.thirty : 1;
  let agent = first;
  for (let round = 1; round <= rounds; round++) {
    if (chosen.has('thirty')) {
      results.floor('thirtyRunning', (await stage.floor.start(30, stage.stop)).running);
      results.floor('thirtyGone', await stage.floor.end(stage.stop));
    }
    const start = await agentStarts(stage, agent, 30);
    if (round === rounds) {
      if (chosen.has('idle')) await idle(play, agent, { memory: 'memory30', cpu: 'idle30' });
      if (chosen.has('restart')) agent = await restartOften(play, agent);
    }
    const end = await agentEnds(stage, agent);
    if (chosen.has('thirty')) {
      results.agent('thirtyRunning', start.running);
      results.agent('thirtyGone', end.gone);
    }
  }
  return agent;
}

async function restartOften(
  { stage, results, times, say }: Play,
  first: AgentProcess,
): Promise<AgentProcess> {
  say('restarting the agent with 30 pods');
  let agent = first;
  const before = await benchContainers(stage.floor.runtime);
  for (let round = 0; round < times.restart; round++) {
    await agent.end('SIGKILL');
    agent = stage.startAgent();
    results.agent('restartAdopted', await agent.podsRunning(before.length));
  }
  await pause(1000, undefined, { signal: stage.stop });
  const after = new Set(await benchContainers(stage.floor.runtime));
  const replaced = before.filter((id) => !after.has(id)).length + Math.max(0, after.size - before.length);
  results.agent('restartRestarted', replaced);
  return agent;
}

async function hundred(play: Play, agent: AgentProcess): Promise<void> {
  const { stage, results, chosen } = play;
  results.floor('hundredRunning', (await stage.floor.start(100, stage.stop)).running);
  results.floor('hundredGone', await stage.floor.end(stage.stop));
  const start = await agentStarts(stage, agent, 100);
  results.agent('hundredRunning', start.running);
  results.agent('cpuStart', start.cpu);
  if (chosen.has('idle')) await idle(play, agent, { memory: 'memory100', cpu: 'idle100' });
  await scrapes(play, agent);
  const end = await agentEnds(stage, agent);
  results.agent('hundredGone', end.gone);
  results.agent('cpuEnd', end.cpu);
}

/** What those who ask for figures cost, with the pods that run now. */
async function scrapes({ stage: { stop }, results, times, say }: Play, agent: AgentProcess): Promise<void> {
  say('asking for statistics');
  for (const [path, time, cpu] of [
    ['/stats/summary', 'summaryTime', 'summaryCpu'],
    ['/metrics/cadvisor', 'cadvisorTime', 'cadvisorCpu'],
  ] as const) {
    for (let round = 0; round < times.scrapes; round++) {
      // Figures are kept for a second; each question is to be measured for.
      await pause(1100, undefined, { signal: stop });
      const before = agent.cpuSeconds();
      const seconds = await agent.scrape(path);
      if (round === 0) continue;
      results.agent(time, seconds);
      results.agent(cpu, agent.cpuSeconds() - before);
    }
  }
}

async function idle(
  { stage, results, times, say }: Play,
  agent: AgentProcess,
  row: { memory: RowId; cpu: RowId },
): Promise<void> {
  const { stop, manifests } = stage;
  say(`idle for ${times.idleSeconds} s with ${manifests.count} pods`);
  await pause(settleMs, undefined, { signal: stop });
  const before = agent.cpuSeconds();
  await pause(times.idleSeconds * 1000, undefined, { signal: stop });
  results.agent(row.cpu, ((agent.cpuSeconds() - before) / times.idleSeconds) * 100);
  results.agent(row.memory, agent.residentMib());
}
