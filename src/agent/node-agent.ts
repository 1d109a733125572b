/**
 * The node agent, put together: the only place that knows every room. Builds them, starts them in order
 * and stops them in the reverse one. Stopping leaves every pod running; the next agent adopts them.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, sleep } from '../concurrency/clock.ts';
import { LatestOnly } from '../concurrency/latest-only.ts';
import type { NodeAgentSettings } from '../config/settings.ts';
import { podKey } from '../kubernetes/pod-identity.ts';
import type { Pod } from '../kubernetes/types.ts';
import { CgroupHierarchy } from '../linux/cgroupfs.ts';
import { makeSharedMount } from '../linux/mounts.ts';
import { NodeEvents } from '../node/node-events.ts';
import type { StepHook } from '../pods/executors/executors.ts';
import { PodMetrics } from '../pods/pod-metrics.ts';
import { PodRecords } from '../pods/pod-records.ts';
import { PodWorkers } from '../pods/pod-workers.ts';
import type { ContainerProcesses } from '../probes/handlers/exec-leftovers.ts';
import { ProbeMemoryFile } from '../probes/probe-memory.ts';
import { Prober } from '../probes/prober.ts';
import { CriClient } from '../runtime/cri/cri-client.ts';
import { checkRuntime, type RuntimeFacts } from '../runtime/cri/runtime-check.ts';
import { runtimeEventSource } from '../runtime/events/runtime-event-source.ts';
import type { ObservedPod } from '../runtime/observed-pod.ts';
import { RuntimeObserver } from '../runtime/runtime-observer.ts';
import type { HealthCheck } from '../server/health-checks.ts';
import type { Introspection } from '../server/introspection-routes.ts';
import type { NodeRoute } from '../server/route.ts';
import { EarlySource } from '../sources/early-source.ts';
import { PodSources } from '../sources/pod-sources.ts';
import type { NodeStats } from '../stats/node-stats.ts';
import { EventLog } from '../telemetry/event-log.ts';
import type { EventRecorder } from '../telemetry/events.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { MetricsRegistry } from '../telemetry/metrics-registry.ts';
import { membershipOf } from './cluster/join-cluster.ts';
import type { Membership } from './cluster/membership.ts';
import { containerProcesses, podCgroupOf } from './container-processes.ts';
import { CurrentRuntime } from './current-runtime.ts';
import { buildPodGarbage } from './garbage-builder.ts';
import { buildImages } from './images-builder.ts';
import { Lifetime } from './lifetime.ts';
import { buildLocalStorage } from './local-storage-builder.ts';
import { buildLogRotation, logRoutes } from './logs-builder.ts';
import { declareStateMetrics } from './metrics-builder.ts';
import { type MachineFacts, readMachineFacts } from './node-facts.ts';
import { nodeRoutes } from './node-routes.ts';
import { isOurs, type Owner, podFromRuntime } from './ownership.ts';
import { PodChanges } from './pod-changes.ts';
import { type BuiltPodServices, buildPodServices } from './pod-services-builder.ts';
import { buildPodSources } from './pod-sources-builder.ts';
import { preflight } from './preflight.ts';
import { runningPods } from './running-pods.ts';
import { RuntimeLink } from './runtime-link.ts';
import { startHealth, startNodeApi, syncLoopCheck } from './servers.ts';
import { buildNodeStats, volumeSource } from './stats-builder.ts';
import { buildStreamingRoutes } from './streaming-builder.ts';
import { workerPorts } from './worker-ports.ts';

/** What an agent is started with. */
export interface NodeAgentOptions {
  readonly settings: NodeAgentSettings;
  /** Whether a Kubernetes feature gate is on. */
  readonly featureEnabled: (gate: string) => boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: MetricsRegistry;
  /** What `/metrics/probes` shows. */
  readonly probeMetrics: MetricsRegistry;
  /** What the node's API tells about this program. */
  readonly about: Introspection;
  /** Called around every action of every pod; for tests that stop the world between two steps. */
  readonly onStep?: StepHook;
  /** Gives a start up that is under way, such as one that waits for the runtime. */
  readonly signal?: AbortSignal;
}

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
    return await new NodeAgent(options, lifetime).start();
  } catch (error) {
    await lifetime
      .end()
      .catch((trouble: unknown) => options.logger.error('Letting go of what was started failed', trouble));
    throw error;
  }
}

class NodeAgent {
  readonly #options: NodeAgentOptions;
  readonly #lifetime: Lifetime;
  // Rooms that tell each other of changes exist before all of them do; until then nobody listens.
  #workers: PodWorkers | undefined;
  readonly #changes = new PodChanges();
  #observer: RuntimeObserver | undefined;
  #stats: NodeStats | undefined;

  constructor(options: NodeAgentOptions, lifetime: Lifetime) {
    this.#options = options;
    this.#lifetime = lifetime;
  }

  async start(): Promise<RunningAgent> {
    const { settings, clock, logger, metrics } = this.#options;
    const { signal } = this.#lifetime;
    await this.#serveHealth();

    const hierarchy = await CgroupHierarchy.open(clock);
    const facts = await this.#examineMachine(hierarchy);
    const nodeName = settings.hostnameOverride ?? facts.hostname;
    const eventLog = this.#recordEvents(nodeName);
    const membership = membershipOf({ ...this.#options, nodeName, facts, events: eventLog });
    this.#lifetime.onEnd(() => membership.close());
    const { events } = membership;
    const nodeEvents = new NodeEvents({ recorder: events, nodeName });
    nodeEvents.starting();
    if (facts.cgroupVersion === 1) nodeEvents.cgroupV1();
    // Before the runtime, which may take its time: the cluster learns at once that the node is there.
    const inCluster = membership.run(signal);
    inCluster.catch(() => {});
    this.#lifetime.onEnd(() => inCluster.catch(() => {}));

    // Read beside all that follows: manifests do not depend on the runtime.
    const staticSources = (await buildPodSources({ ...this.#options, nodeName })).map(
      (source) => new EarlySource(source, signal),
    );

    const { runtime, runtimeFacts } = await this.#connectRuntime();
    const current = this.#followRuntime(runtime, runtimeFacts, membership);
    membership.node.runtimeFound(runtimeFacts, runtime);
    const link = new RuntimeLink({
      runtime,
      clock,
      logger,
      onChange: () => this.#workers?.wakeAll(),
      onLook: (look) => membership.node.runtimeLooked(look),
    });
    const looked = link.check(signal);
    const observer = this.#observe(runtime, runtimeFacts, membership);
    const containers = this.#containerRoutes(runtime, observer);
    await this.#serveNode(nodeName, facts, membership, containers);
    const records = new PodRecords({ rootDirectory: settings.rootDirectory, clock, logger });
    const images = await buildImages({
      ...this.#options,
      runtime,
      runtimeName: runtimeFacts.name,
      nodeName,
      membership,
      signal,
    });
    const built = await buildPodServices({
      ...this.#options,
      images,
      wake: (uid) => this.#workers?.wake(uid),
      facts,
      nodeName,
      hierarchy,
      runtime,
      runtimeFacts: () => current.facts,
      observer,
      records,
      membership,
    });
    const [recorded] = await Promise.all([
      records.readAll(),
      looked,
      observer.relist(signal),
      settings.cgroups.perQos ? built.cgroups.ensureRoot(signal) : undefined,
    ]);

    const podSources = [
      ...staticSources,
      ...membership.pods.sources(await membership.remembered(recorded, (uid) => observer.pod(uid))),
    ];
    const podMetrics = new PodMetrics({ metrics, clock });
    const prober = await this.#probe({
      runtime,
      events,
      observer,
      hostIps: facts.addresses,
      processes: settings.cgroups.perQos
        ? containerProcesses({
            hierarchy,
            podCgroup: podCgroupOf({
              podOf: (id) => observer.podOf(id),
              pod: (uid) => this.#workers?.get(uid)?.pod,
              pathOf: (pod) => built.cgroups.pathOf(pod),
            }),
          })
        : undefined,
    });
    const qosClasses = this.#keepQosClasses(built);
    const owner: Owner = {
      rootDirectory: settings.rootDirectory,
      sources: new Set(podSources.map(({ name }) => name)),
    };
    const workers = new PodWorkers({
      ports: workerPorts(this.#options, {
        built,
        link,
        membership,
        observer,
        prober,
        podMetrics,
        changes: this.#changes,
        runtimeName: runtimeFacts.name,
      }),
      logger,
      records: recorded,
      leftovers: () => leftoverPods(observer, owner),
      admit: (pod, occupants, held) => built.admission.decide(pod, occupants, held),
      onGone: (pod) => {
        logger.info('Nothing is left of a pod', { pod: podKey(pod), podUID: pod.metadata.uid });
        prober.forget(pod.metadata.uid);
        membership.pods.gone(pod);
        podMetrics.forget(pod.metadata.uid);
        this.#changes.tell(pod.metadata.uid);
        qosClasses.refresh();
      },
    });
    this.#workers = workers;
    membership.attach({ workers, volumes: built.volumes });
    this.#lifetime.onEnd(() => workers.close());

    const sources = new PodSources({ sources: podSources, nodeName, log: logger, events, metrics });
    const podGarbage = buildPodGarbage(this.#options, {
      built,
      observer,
      workers,
      sources,
      nodeName,
      events,
    });
    const localStorage = buildLocalStorage(this.#options, { built, observer, workers, events });
    const logRotation = buildLogRotation(this.#options, { runtime, observer, workers });
    const volumes = volumeSource(localStorage, workers);
    const stats = await buildNodeStats(this.#options, {
      hierarchy,
      facts,
      nodeName,
      built,
      observer,
      workers,
      volumes,
    });
    this.#stats = stats;
    declareStateMetrics(metrics, {
      workers,
      desired: () => sources.pods.values(),
      observer,
      stats,
      volumes,
      mountedKinds: () => [...built.volumes.mounted()].flatMap((pod) => pod.volumes.map(({ kind }) => kind)),
      cgroupVersion: hierarchy.version,
    });
    const background = Promise.all([
      logRotation.run(signal),
      localStorage.run(signal),
      inCluster,
      images.collector.run(signal),
      podGarbage.run(signal),
      observer.run(signal),
      link.run(signal),
      this.#resync(workers),
      sources.run((change) => {
        membership.pods.wanted(change);
        workers.setDesired(sources.pods, change.ready);
        membership.pods.handedOver(change);
        qosClasses.refresh();
      }, signal),
    ]);
    const broken = Promise.withResolvers<unknown>();
    background.catch((error: unknown) => signal.aborted || broken.resolve(error));
    this.#lifetime.onEnd(() => background.catch(() => {}));
    return {
      nodeName,
      workers,
      sources,
      broken: broken.promise,
      stop: () => this.#lifetime.end(),
    };
  }

  /** First of all, so that whoever started the agent sees that it lives. */
  async #serveHealth(): Promise<void> {
    const health = await startHealth({ ...this.#options, checks: this.#checks() });
    this.#lifetime.onEnd(() => health?.close());
  }

  #checks(): HealthCheck[] {
    return [syncLoopCheck(this.#options.clock, () => this.#observer?.lastRelist)];
  }

  /** What is asked of the node, once there is something to answer with. */
  async #serveNode(
    nodeName: string,
    { addresses }: MachineFacts,
    membership: Membership,
    containers: readonly NodeRoute[],
  ): Promise<void> {
    const { about, clock, logger, metrics, probeMetrics, settings } = this.#options;
    const routes = nodeRoutes({
      about,
      handlers: settings.nodeServer?.handlers ?? noHandlers,
      runningPods: () => runningPods(observedPods(this.#observer)),
      containers,
      core: {
        checks: this.#checks(),
        pods: () => [...(this.#workers?.all() ?? [])].map(({ pod, status }): Pod => ({ ...pod, status })),
        metrics,
        probeMetrics,
        clock,
        log: logger,
      },
      stats: () => this.#stats,
    });
    const api = await startNodeApi({ ...this.#options, routes, nodeName, addresses, membership });
    this.#lifetime.onEnd(() => api.close());
  }

  #containerRoutes(runtime: CriClient, observer: RuntimeObserver): NodeRoute[] {
    const { settings, clock } = this.#options;
    const workers = () => this.#workers;
    const idleMs = settings.streamIdleMs;
    return [
      ...logRoutes(this.#options, { workers, observer, changes: this.#changes }),
      ...buildStreamingRoutes({ runtime, observer, workers, idleMs, clock }),
    ];
  }

  async #examineMachine(hierarchy: CgroupHierarchy): Promise<MachineFacts> {
    const { settings } = this.#options;
    await mkdir(settings.rootDirectory, { recursive: true, mode: 0o750 });
    await preflight({ hierarchy, settings, logger: this.#options.logger });
    const facts = await readMachineFacts(hierarchy, settings.rootDirectory);
    // What is mounted for pods must reach containers that run already, and what those mount the host, where
    // volumes ask for propagation. As with a kubelet it stays for the next agent: pods use it meanwhile.
    if (await makeSharedMount(settings.rootDirectory)) {
      this.#options.logger.info('Made the root directory a shared mount', { path: settings.rootDirectory });
    }
    return facts;
  }

  #recordEvents(nodeName: string): EventLog {
    const { settings, clock, logger } = this.#options;
    const file = join(settings.rootDirectory, 'kubelet-ts', 'events.jsonl');
    const events = new EventLog({ nodeName, clock, log: logger, file });
    this.#lifetime.onEnd(() => events.flush());
    return events;
  }

  async #connectRuntime(): Promise<{ runtime: CriClient; runtimeFacts: RuntimeFacts }> {
    const { settings, clock, logger, metrics } = this.#options;
    const { endpoint, imageEndpoint, requestTimeoutMs } = settings.runtime;
    const runtime = new CriClient({ endpoint, imageEndpoint, clock, metrics, requestTimeoutMs });
    this.#lifetime.onEnd(() => runtime.close());
    const runtimeFacts = await checkRuntime({ runtime, clock, logger, signal: this.#lifetime.signal });
    return { runtime, runtimeFacts };
  }

  #followRuntime(runtime: CriClient, facts: RuntimeFacts, { node }: Membership): CurrentRuntime {
    const { clock, logger } = this.#options;
    const current = new CurrentRuntime({
      runtime,
      connection: runtime.connection,
      facts,
      clock,
      logger,
      signal: this.#lifetime.signal,
      // A pod may wait for what the runtime could not do before.
      onChange: (changed) => {
        node.runtimeFound(changed, runtime);
        this.#workers?.wakeAll();
      },
    });
    current.watch();
    return current;
  }

  #observe(runtime: CriClient, { name }: RuntimeFacts, { node }: Membership): RuntimeObserver {
    const { clock, logger, metrics } = this.#options;
    const observer = new RuntimeObserver({
      runtime,
      metrics,
      events: runtimeEventSource({ runtimeName: name, connection: runtime.connection, clock, logger }),
      clock,
      logger,
      onChange: (uid) => {
        if (this.#workers?.get(uid)) this.#workers.wake(uid);
        // Something of a pod that was thought gone has turned up, as after a call that timed out.
        else this.#workers?.endLeftovers();
      },
      onRelisted: () => node.relisted(),
    });
    this.#observer = observer;
    return observer;
  }

  async #probe(rooms: {
    runtime: CriClient;
    events: EventRecorder;
    observer: RuntimeObserver;
    hostIps: readonly string[];
    processes: ContainerProcesses | undefined;
  }): Promise<Prober> {
    const { settings, clock, logger, probeMetrics } = this.#options;
    const memory = new ProbeMemoryFile({ rootDirectory: settings.rootDirectory, clock, logger });
    await memory.load();
    const prober = new Prober({
      clock,
      logger,
      events: rooms.events,
      metrics: probeMetrics,
      exec: rooms.runtime,
      ...(rooms.processes && { processes: rooms.processes }),
      memory,
      hostIps: rooms.hostIps,
      onChange: (uid) => this.#workers?.wake(uid),
    });
    // What no longer runs is not worth remembering.
    memory.retain(rooms.observer.containers());
    this.#lifetime.onEnd(async () => {
      prober.close();
      await memory.flush();
    });
    return prober;
  }

  /** CPU shares of the QoS classes follow the pods that are active. */
  #keepQosClasses({ cgroups }: BuiltPodServices): LatestOnly {
    const { logger, settings } = this.#options;
    return new LatestOnly(
      async () => {
        if (!settings.cgroups.perQos) return;
        const active = [...(this.#workers?.all() ?? [])].filter(
          ({ memory }) => memory.terminal === undefined,
        );
        await cgroups.updateQos(
          active.map(({ pod }) => pod),
          this.#lifetime.signal,
        );
      },
      (error) => {
        if (!this.#lifetime.signal.aborted)
          logger.error('Setting the CPU shares of QoS classes failed', error);
      },
    );
  }

  /** The widest mesh of the safety net: every pod is looked at now and then even if nothing was heard of it. */
  async #resync(workers: PodWorkers): Promise<void> {
    const { clock, settings } = this.#options;
    const { signal } = this.#lifetime;
    while (!signal.aborted) {
      await sleep(clock, settings.resyncMs, signal).catch(() => {});
      workers.wakeAll();
    }
  }
}

/** Nobody asks: the port is closed. */
const noHandlers = { flags: false, status: false, verbosity: false, profiling: false, systemLogs: false };

function* observedPods(observer: RuntimeObserver | undefined): Generator<ObservedPod> {
  for (const uid of observer?.pods() ?? []) {
    const pod = observer?.pod(uid);
    if (pod) yield pod;
  }
}

function* leftoverPods(observer: RuntimeObserver, owner: Owner): Generator<Pod> {
  for (const uid of observer.pods()) {
    const identity = observer.identity(uid);
    if (identity && isOurs(identity.annotations, owner)) yield podFromRuntime(observer.pod(uid), identity);
  }
}
