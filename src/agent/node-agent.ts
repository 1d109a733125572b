/**
 * The node agent, put together: the only place that knows every room. Builds them, starts them in order
 * and stops them in the reverse one. Stopping leaves every pod running; the next agent adopts them.
 */
import { join } from 'node:path';
import { CgroupHierarchy } from '../linux/cgroupfs.ts';
import { NodeEvents } from '../node/node-events.ts';
import { volumeImages } from '../pods/image-volumes.ts';
import { PodRecords } from '../pods/pod-records.ts';
import type { PodWorkers } from '../pods/pod-workers.ts';
import { EarlySource } from '../sources/early-source.ts';
import { PodSources } from '../sources/pod-sources.ts';
import { EventLog } from '../telemetry/event-log.ts';
import { type AgentContext, LateRooms, type NodeAgentOptions } from './agent-context.ts';
import { membershipOf } from './cluster/join-cluster.ts';
import type { Membership } from './cluster/membership.ts';
import { examineMachine } from './examine-machine.ts';
import { buildImages } from './images-builder.ts';
import { Lifetime } from './lifetime.ts';
import { serveHealth, serveNode } from './node-api-builder.ts';
import type { MachineFacts } from './node-facts.ts';
import { buildPodServices, knownHostIps } from './pod-services-builder.ts';
import { buildPodSources } from './pod-sources-builder.ts';
import { buildProber } from './probes-builder.ts';
import { keepQosClasses } from './qos-classes.ts';
import { buildRuntime } from './runtime-builder.ts';
import { buildUpkeep } from './upkeep-builder.ts';
import { buildWorkers } from './workers-builder.ts';

/** A started agent, as far as others look into it. */
export interface RunningAgent {
  readonly nodeName: string;
  readonly workers: PodWorkers;
  readonly sources: PodSources;
  /** Resolves with its error when a part of the agent has broken: the rest of it cannot be relied on. */
  readonly broken: Promise<unknown>;
  /** Lets go of everything; pods stay as they are. */
  stop(): Promise<void>;
}

/** Starts the agent; resolves once pods are being looked after. Rejects with what keeps it from starting. */
export async function startNodeAgent(options: NodeAgentOptions): Promise<RunningAgent> {
  const lifetime = new Lifetime(options.signal);
  try {
    return await start({ ...options, lifetime, signal: lifetime.signal, rooms: new LateRooms() });
  } catch (error) {
    await lifetime
      .end()
      .catch((trouble: unknown) => options.logger.error('Letting go of what was started failed', trouble));
    throw error;
  }
}

async function start(context: AgentContext): Promise<RunningAgent> {
  const { settings, clock, logger, metrics, lifetime, signal } = context;
  await serveHealth(context);

  const hierarchy = await CgroupHierarchy.open(clock);
  const facts = await examineMachine(context, hierarchy);
  const nodeName = settings.hostnameOverride ?? facts.hostname;
  const membership = becomeMember(context, { nodeName, facts });
  const { events } = membership;
  tellOfStart(membership, nodeName, facts);
  // Before the runtime, which may take its time: the cluster learns at once that the node is there.
  const inCluster = membership.run(signal);
  inCluster.catch(() => {});
  lifetime.onEnd(() => inCluster.catch(() => {}));

  // Read beside all that follows: manifests do not depend on the runtime.
  const staticSources = (await buildPodSources({ ...context, nodeName })).map(
    (source) => new EarlySource(source, signal),
  );
  const runtimeRooms = await buildRuntime(context, membership.node);
  const { runtime, observer } = runtimeRooms;
  await serveNode(context, { nodeName, addresses: facts.addresses, membership, runtime, observer });

  const records = new PodRecords({ ...settings, clock, logger });
  const images = await buildImages({
    ...context,
    runtime,
    runtimeName: runtimeRooms.name,
    nodeName,
    membership,
    volumeImages: () => volumeImages([...(context.rooms.workers?.all() ?? [])].map(({ pod }) => pod)),
  });
  const built = await buildPodServices({
    ...context,
    images,
    wake: (uid) => context.rooms.workers?.wake(uid),
    facts,
    nodeName,
    hierarchy,
    runtime,
    runtimeFacts: runtimeRooms.facts,
    observer,
    records,
    membership,
  });
  const [recorded] = await Promise.all([
    records.readAll(),
    observer.relist(signal),
    settings.cgroups.perQos ? built.cgroups.ensureRoot(signal) : undefined,
  ]);

  const remembered = await membership.remembered(recorded, (uid) => observer.pod(uid));
  const podSources = [...staticSources, ...membership.pods.sources(remembered)];
  const hostIps = () => knownHostIps(membership.node, facts);
  const prober = await buildProber(context, { runtime, observer, hierarchy, built, events, hostIps });
  const qosClasses = keepQosClasses(context, built.cgroups);
  const workers = buildWorkers(context, {
    built,
    runtime: runtimeRooms,
    membership,
    prober,
    recorded,
    podSources,
    onGone: () => qosClasses.refresh(),
  });
  const sources = new PodSources({ sources: podSources, nodeName, log: logger, events, metrics });
  const upkeep = await buildUpkeep(context, {
    hierarchy,
    facts,
    nodeName,
    events,
    runtime: runtimeRooms,
    images,
    built,
    workers,
    sources,
  });

  const background = Promise.all([
    inCluster,
    ...upkeep.map((part) => part.run(signal)),
    sources.run((change) => {
      membership.pods.wanted(change);
      workers.setDesired(sources.pods, change.ready);
      membership.pods.handedOver(change);
      qosClasses.refresh();
    }, signal),
  ]);
  const broken = Promise.withResolvers<unknown>();
  background.catch((error: unknown) => signal.aborted || broken.resolve(error));
  lifetime.onEnd(() => background.catch(() => {}));
  return { nodeName, workers, sources, broken: broken.promise, stop: () => lifetime.end() };
}

/** The node's membership, and its own log of events, which lives as long. */
function becomeMember(
  context: AgentContext,
  { nodeName, facts }: { readonly nodeName: string; readonly facts: MachineFacts },
): Membership {
  const { settings, clock, logger, lifetime } = context;
  const file = join(settings.rootDirectory, 'kubelet-ts', 'events.jsonl');
  const events = new EventLog({ nodeName, clock, log: logger, file });
  lifetime.onEnd(() => events.flush());
  const membership = membershipOf({ ...context, nodeName, facts, events });
  lifetime.onEnd(() => membership.close());
  return membership;
}

function tellOfStart({ events }: Membership, nodeName: string, { cgroupVersion }: MachineFacts): void {
  const nodeEvents = new NodeEvents({ recorder: events, nodeName });
  nodeEvents.starting();
  if (cgroupVersion === 1) nodeEvents.cgroupV1();
}
