/** Builds what probes containers, with what was known of them before the agent was started anew. */
import type { CgroupHierarchy } from '../linux/cgroupfs.ts';
import { ProbeMemoryFile } from '../probes/probe-memory.ts';
import { Prober } from '../probes/prober.ts';
import type { CriClient } from '../runtime/cri/cri-client.ts';
import type { RuntimeObserver } from '../runtime/runtime-observer.ts';
import type { EventRecorder } from '../telemetry/events.ts';
import type { AgentContext } from './agent-context.ts';
import { containerProcesses, podCgroupOf } from './container-processes.ts';
import type { BuiltPodServices } from './pod-services-builder.ts';

export interface ProbeRooms {
  readonly runtime: CriClient;
  readonly observer: RuntimeObserver;
  readonly hierarchy: CgroupHierarchy;
  readonly built: BuiltPodServices;
  readonly events: EventRecorder;
  /** Where pods of the host's network are probed. */
  readonly hostIps: () => readonly string[];
}

export async function buildProber(context: AgentContext, input: ProbeRooms): Promise<Prober> {
  const { settings, clock, logger, probeMetrics, lifetime, rooms } = context;
  const { runtime, observer, hierarchy, built, events, hostIps } = input;
  const memory = new ProbeMemoryFile({ rootDirectory: settings.rootDirectory, clock, logger });
  await memory.load();
  const podCgroup = podCgroupOf({
    podOf: (id) => observer.podOf(id),
    pod: (uid) => rooms.workers?.get(uid)?.pod,
    pathOf: (pod) => built.cgroups.pathOf(pod),
  });
  const prober = new Prober({
    clock,
    logger,
    events,
    metrics: probeMetrics,
    exec: runtime,
    ...(settings.cgroups.perQos && { processes: containerProcesses({ hierarchy, podCgroup }) }),
    memory,
    get hostIps() {
      return hostIps();
    },
    onChange: (uid) => rooms.workers?.wake(uid),
  });
  // What no longer runs is not worth remembering.
  memory.retain(observer.containers());
  lifetime.onEnd(async () => {
    prober.close();
    await memory.flush();
  });
  return prober;
}
