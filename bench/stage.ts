/**
 * Where the bench plays: a private containerd, a cgroup and a directory of its own, and a copy of the built
 * executable, so that a build in the meantime does not change what is measured. All of it goes away again.
 */
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { demoImages, importDemoImages } from '../scripts/machine/demo-images.ts';
import { createOwnCgroup, removeOwnCgroup } from '../scripts/machine/own-cgroup.ts';
import {
  type PrivateContainerd,
  startPrivateContainerd,
  stopPrivateContainerd,
} from '../scripts/machine/private-containerd.ts';
import { unmountBelow } from '../scripts/machine/teardown.ts';
import { type AgentPorts, agentFlags, freePorts } from './agent-configuration.ts';
import { AgentProcess } from './agent-process.ts';
import { Floor } from './floor.ts';
import { Manifests } from './manifests.ts';

export interface Stage {
  readonly containerd: PrivateContainerd;
  readonly floor: Floor;
  readonly manifests: Manifests;
  readonly stop: AbortSignal;
  /** For files of a part; goes away with the stage. */
  readonly directory: string;
  /** The agent's API: `https://127.0.0.1:<port>`. */
  readonly api: string;
  /** Starts the agent; one at a time, and the stage ends the one that is left. */
  startAgent(moreFlags?: readonly string[]): AgentProcess;
}

export interface StageOptions {
  /** The executable to measure. */
  readonly program: string;
  /** Environment of the agent beside the bench's own. */
  readonly agentEnvironment: NodeJS.ProcessEnv;
  readonly stop: AbortSignal;
}

/** Sets the stage, lets `play` measure on it, and takes everything down whatever happened. */
export async function withStage(
  { program, agentEnvironment, stop }: StageOptions,
  play: (stage: Stage) => Promise<void>,
): Promise<void> {
  if (!existsSync(program)) throw new Error(`${program} does not exist; build it with: npm run build`);
  const directory = mkdtempSync('/var/tmp/kubelet-ts-bench-');
  const cgroup = basename(directory);
  const containerdDirectory = join(directory, 'containerd');
  let agent: AgentProcess | undefined;
  let floor: Floor | undefined;
  try {
    const copy = join(directory, 'program');
    cpSync(dirname(program), copy, { recursive: true });
    const containerd = await startPrivateContainerd({
      directory: containerdDirectory,
      note: (text) => console.error(text),
    });
    const { endpoint, snapshotter } = containerd;
    await importDemoImages({ endpoint, directory: containerdDirectory, snapshotter });
    createOwnCgroup(cgroup);
    const manifests = new Manifests(directory, demoImages.busybox);
    floor = new Floor({
      endpoint,
      image: demoImages.busybox,
      cgroupParent: `/${cgroup}/floor`,
      logDirectory: join(directory, 'floor-logs'),
      // More in flight make the runtime slower, not faster.
      inFlight: 2 * availableParallelism(),
    });
    const ports: AgentPorts = await freePorts();
    const flags = agentFlags({ directory, cgroup, endpoint, ports, manifests: manifests.directory });
    stop.throwIfAborted();
    await play({
      containerd,
      floor,
      manifests,
      stop,
      directory,
      api: `https://127.0.0.1:${ports.main}`,
      startAgent: (moreFlags = []) => {
        agent = new AgentProcess({
          program: join(copy, basename(program)),
          flags: [...flags, ...moreFlags],
          logFile: join(directory, 'agent.log'),
          healthPort: ports.health,
          podsPort: ports.pods,
          env: agentEnvironment,
          stop,
        });
        return agent;
      },
    });
  } finally {
    // Whatever goes wrong here, the rest is taken down all the same.
    await Promise.allSettled([agent?.end(), floor?.close()]);
    await stopPrivateContainerd(containerdDirectory, { data: true });
    await removeOwnCgroup(cgroup);
    await unmountBelow(directory);
    rmSync(directory, { recursive: true, force: true });
  }
}
