/** Starting and ending pods, by the agent and by the floor in turn, in the same words for one and for many. */
import { listSandboxes } from '../scripts/machine/cri-calls.ts';
import type { CriClient } from '../src/runtime/cri/cri-client.ts';
import { isGone, isStarted } from './agent-log.ts';
import type { AgentProcess } from './agent-process.ts';
import { lastStart, type StartTimes } from './floor.ts';
import type { Stage } from './stage.ts';

/** Far beyond anything that is still a measurement. */
const limitMs = 180_000;

interface AgentTimes extends StartTimes {
  /** Processor seconds of the agent. */
  readonly cpu: number;
}

/** Makes `count` manifests appear and waits until all their containers run. */
export async function agentStarts(stage: Stage, agent: AgentProcess, count: number): Promise<AgentTimes> {
  const { manifests, floor, stop } = stage;
  agent.log.read();
  const cpuBefore = agent.cpuSeconds();
  const before = manifests.add(count);
  const times = await agent.log.times(isStarted, { count, limitMs, stop });
  const cpu = agent.cpuSeconds() - cpuBefore;
  const answered = Math.max(...times.values());
  const running = await lastStart(floor.runtime, await benchContainers(floor.runtime));
  return { running: (running - before) / 1000, answered: (answered - before) / 1000, cpu };
}

/** Removes all manifests and waits until nothing is left of their pods. */
export async function agentEnds(
  stage: Stage,
  agent: AgentProcess,
): Promise<{ readonly gone: number; readonly cpu: number }> {
  const { manifests, containerd, stop } = stage;
  const { count } = manifests;
  agent.log.read();
  const cpuBefore = agent.cpuSeconds();
  const before = manifests.removeAll();
  const times = await agent.log.times(isGone, { count, limitMs, stop });
  const cpu = agent.cpuSeconds() - cpuBefore;
  const left = (await listSandboxes(containerd.endpoint)).filter(({ pod }) => pod.startsWith('bench/'));
  if (left.length > 0) throw new Error(`the agent said all pods are gone, the runtime has ${left.length}`);
  return { gone: (Math.max(...times.values()) - before) / 1000, cpu };
}

/** Ids of the containers that the agent runs, oldest first. */
export async function benchContainers(runtime: CriClient): Promise<string[]> {
  const labelSelector = { 'io.kubernetes.pod.namespace': 'bench' };
  const filter = { id: '', podSandboxId: '', state: undefined, labelSelector };
  const { containers } = await runtime.listContainers({ filter });
  return containers.toSorted((a, b) => Number(a.createdAt - b.createdAt)).map(({ id }) => id);
}
