/** What people do with one running container: commands in it, and its log. */
import { once } from 'node:events';
import { appendFileSync, readdirSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type ExecOutcome, execSession } from '../test/fixtures/streams/exec-session.ts';
import type { AgentProcess } from './agent-process.ts';
import { now } from './measure.ts';
import { agentEnds, agentStarts, benchContainers } from './pods-at-once.ts';
import type { Results } from './results.ts';
import type { Stage } from './stage.ts';

const execRounds = 20;
const megabytes = 256;
const followRounds = 50;
const settleMs = 500;
/** Far beyond anything that is still a measurement. */
const limitMs = 60_000;

export async function containers(stage: Stage, results: Results, agent: AgentProcess): Promise<void> {
  await agentStarts(stage, agent, 1);
  const podLogs = join(stage.directory, 'logs');
  const [directory = ''] = readdirSync(podLogs).filter((name) => name.startsWith('bench_'));
  const pod = directory.split('_')[1] ?? '';
  await commands(stage, results, pod);
  await log(stage, results, { pod, directory: join(podLogs, directory, 'main') });
  await agentEnds(stage, agent);
}

/** By the agent, and by the runtime's own URL in turn. */
async function commands({ floor, api, stop }: Stage, results: Results, pod: string): Promise<void> {
  const [containerId = ''] = await benchContainers(floor.runtime);
  const straight = async (cmd: readonly string[]): Promise<string> => {
    const streams = { stdin: false, stdout: true, stderr: true, tty: false };
    return (await floor.runtime.exec({ containerId, cmd: [...cmd], ...streams })).url;
  };
  const byAgent = (cmd: readonly string[]): Promise<string> => {
    const query = new URLSearchParams({ output: '1', error: '1' });
    for (const word of cmd) query.append('command', word);
    return Promise.resolve(`${api}/exec/bench/${pod}/main?${query.toString()}`);
  };
  const time = async (url: (cmd: readonly string[]) => Promise<string>, cmd: readonly string[]) => {
    const before = now();
    const outcome = await execSession(await url(cmd), { signal: limited(stop) });
    if (!outcome.status.includes('Success')) throw new Error(`exec failed: ${outcome.status}`);
    return { seconds: (now() - before) / 1000, outcome };
  };
  for (let round = 0; round <= execRounds; round++) {
    const floorTime = await time(straight, ['true']);
    const agentTime = await time(byAgent, ['true']);
    if (round === 0) continue;
    results.floor('execRound', floorTime.seconds);
    results.agent('execRound', agentTime.seconds);
  }
  const flood = ['dd', 'if=/dev/zero', 'bs=1048576', `count=${megabytes}`];
  const rate = ({ seconds, outcome }: { seconds: number; outcome: ExecOutcome }) =>
    outcome.stdoutBytes / 1e6 / seconds;
  for (let round = 0; round < 3; round++) {
    results.floor('execRate', rate(await time(straight, flood)));
    results.agent('execRate', rate(await time(byAgent, flood)));
  }
}

async function log(
  { api, stop }: Stage,
  results: Results,
  { pod, directory }: { pod: string; directory: string },
): Promise<void> {
  // As a part that was rotated away: what is read is the same, and nothing rotates it meanwhile.
  const line = `2026-01-01T00:00:00.000000000Z stdout F ${'x'.repeat(100)}\n`;
  const block = line.repeat(Math.ceil(1e6 / line.length));
  const part = join(directory, '0.log.20260101-000000');
  writeFileSync(part, '');
  for (let written = 0; written < megabytes; written++) appendFileSync(part, block);
  const url = `${api}/containerLogs/bench/${pod}/main`;
  for (let round = 0; round < 3; round++) {
    const before = now();
    await drain(await open(url), stop);
    results.agent('logRate', (megabytes * block.length) / 1e6 / ((now() - before) / 1000));
  }
  for (let round = 0; round < 20; round++) {
    const before = now();
    await drain(await open(`${url}?tailLines=100`), stop);
    results.agent('logTail', (now() - before) / 1000);
  }
  const followed = await open(`${url}?follow=true&tailLines=0`);
  const live = join(directory, '0.log');
  // The answer begins before the end of the log is found.
  await pause(settleMs, undefined, { signal: stop });
  for (let round = 0; round < followRounds; round++) {
    const arrived = once(followed, 'data', { signal: limited(stop) });
    const before = now();
    appendFileSync(live, line);
    await arrived;
    results.agent('logFollow', (now() - before) / 1000);
    await pause(20, undefined, { signal: stop });
  }
  followed.destroy();
}

async function open(url: string): Promise<IncomingMessage> {
  const [response] = (await once(get(url, { rejectUnauthorized: false, agent: false }), 'response')) as [
    IncomingMessage,
  ];
  if (response.statusCode !== 200) throw new Error(`${url}: ${response.statusCode}`);
  response.on('error', () => {});
  return response;
}

async function drain(response: IncomingMessage, stop: AbortSignal): Promise<void> {
  response.resume();
  await once(response, 'end', { signal: limited(stop) });
}

/** Nothing is waited for after the bench was told to stop, or for ever. */
function limited(stop: AbortSignal): AbortSignal {
  return AbortSignal.any([stop, AbortSignal.timeout(limitMs)]);
}
