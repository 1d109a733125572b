/**
 * The node agent, put together: the only place that knows every room. Builds them, starts them in order
 * and stops them in the reverse one. Stopping leaves every pod running; the next agent adopts them.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, sleep } from '../concurrency/clock.ts';
import { LatestOnly } from '../concurrency/latest-only.ts';
import type { NodeAgentSettings } from '../config/settings.ts';
import type { Pod } from '../kubernetes/types.ts';
import { CgroupHierarchy } from '../linux/cgroupfs.ts';
import { announcements } from '../pods/announcements.ts';
import type { StepHook } from '../pods/executors/executors.ts';
import { executeWith } from '../pods/executors/executors.ts';
import { PodRecords } from '../pods/pod-records.ts';
import type { PodReport, PodWorkerPorts } from '../pods/pod-worker.ts';
import { PodWorkers } from '../pods/pod-workers.ts';
import { CriClient } from '../runtime/cri/cri-client.ts';
import { checkRuntime } from '../runtime/cri/runtime-check.ts';
import { runtimeEventSource } from '../runtime/events/runtime-event-source.ts';
import { RuntimeObserver } from '../runtime/runtime-observer.ts';
import { PodSources } from '../sources/pod-sources.ts';
import { EventLog } from '../telemetry/event-log.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { MetricsRegistry } from '../telemetry/metrics-registry.ts';
import { readMachineFacts } from './node-facts.ts';
import { isOurs, podFromRuntime } from './ownership.ts';
import { buildPodServices } from './pod-services-builder.ts';
import { buildPodSources } from './pod-sources-builder.ts';
import { PreflightError, preflightProblems } from './preflight.ts';
import { RuntimeLink } from './runtime-link.ts';
import { startServers } from './servers.ts';

export interface NodeAgentOptions {
  readonly settings: NodeAgentSettings;
  /** Whether a Kubernetes feature gate is on. */
  readonly featureEnabled: (gate: string) => boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: MetricsRegistry;
  /** Called around every action of every pod; for tests that stop the world between two steps. */
  readonly onStep?: StepHook;
}

/** The rooms of a started agent that others look into. */
export interface RunningAgent {
  readonly nodeName: string;
  readonly workers: PodWorkers;
  readonly sources: PodSources;
  readonly events: EventLog;
  readonly link: RuntimeLink;
  /** Lets go of everything; pods stay as they are. */
  stop(): Promise<void>;
}

/** Starts the agent; resolves once pods are being looked after. Rejects with what keeps it from starting. */
export async function startNodeAgent(options: NodeAgentOptions): Promise<RunningAgent> {
  const { settings, clock, logger, metrics } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const undo: (() => unknown)[] = [];
  const stop = async () => {
    stopping.abort(new Error('the agent stops'));
    for (const step of undo.toReversed()) await step();
  };

  try {
    let running: PodWorkers | undefined;
    let link: RuntimeLink | undefined;
    const pods = () =>
      running ? [...running.all()].map(({ pod, status }): Pod => ({ ...pod, status })) : [];
    const servers = await startServers({ settings, metrics, logger, pods, problem: () => link?.problem });
    undo.push(() => servers.close());

    await mkdir(settings.rootDirectory, { recursive: true, mode: 0o750 });
    const hierarchy = await CgroupHierarchy.open(clock);
    const facts = await readMachineFacts(hierarchy, settings.rootDirectory);
    const problems = preflightProblems(facts, settings.cgroups, process.getuid?.() ?? 0);
    if (problems.length > 0) throw new PreflightError(problems);
    const nodeName = settings.hostnameOverride ?? facts.hostname;

    const events = new EventLog({
      nodeName,
      clock,
      log: logger,
      file: join(settings.rootDirectory, 'kubelet-ts', 'events.jsonl'),
    });
    events.event({ kind: 'Node', name: nodeName }, 'Normal', 'Starting', 'Starting kubelet.');

    const runtime = new CriClient({
      endpoint: settings.runtime.endpoint,
      imageEndpoint: settings.runtime.imageEndpoint,
      clock,
      metrics,
      requestTimeoutMs: settings.runtime.requestTimeoutMs,
    });
    undo.push(() => runtime.close());
    const runtimeFacts = await checkRuntime({ runtime, clock, logger, signal });
    const runtimeName = runtimeFacts.name;

    link = new RuntimeLink({ runtime, clock, logger, onChange: () => running?.wakeAll() });
    const observer: RuntimeObserver = new RuntimeObserver({
      runtime,
      events: runtimeEventSource({ runtimeName, connection: runtime.connection, clock, logger }),
      clock,
      logger,
      onChange: (uid) => {
        if (running?.get(uid)) running.wake(uid);
        // Something of a pod that was thought gone has turned up, as after a call that timed out.
        else running?.endLeftovers();
      },
    });
    const records = new PodRecords({ rootDirectory: settings.rootDirectory, clock, logger });
    const built = await buildPodServices({
      ...options,
      facts,
      nodeName,
      runtime,
      runtimeFacts,
      observer,
      records,
      hierarchy,
      events,
    });
    const [known] = await Promise.all([
      records.readAll(),
      link.check(signal),
      observer.relist(signal),
      built.cgroups.ensureRoot(signal),
    ]);

    const podSources = await buildPodSources({ ...options, nodeName });
    const owner = {
      rootDirectory: settings.rootDirectory,
      sources: new Set(podSources.map(({ name }) => name)),
    };
    const theLink = link;
    const ports: PodWorkerPorts = {
      clock,
      logger,
      runtimeName,
      hostIps: [],
      observe: (uid) => observer.pod(uid),
      health: () => ({}),
      nodeRules: () => ({
        maxRestartBackoffMs: settings.restartBackOff.maxMs,
        deadContainersKept: 1,
        ...(theLink.networkProblem === undefined ? {} : { networkNotReady: theLink.networkProblem }),
      }),
      execute: executeWith(built.services, options.onStep),
      readMessages: built.readMessages,
      report: (report: PodReport) => {
        for (const { object, type, reason, message } of announcements(report)) {
          events.event(object, type, reason, message);
        }
      },
    };
    const qosClasses = new LatestOnly(
      async () => {
        const active = [...workers.all()].filter(({ memory }) => memory.terminal === undefined);
        await built.cgroups.updateQos(
          active.map(({ pod }) => pod),
          signal,
        );
      },
      (error) => logger.error('Setting the CPU shares of the QoS classes failed', error),
    );
    const workers: PodWorkers = new PodWorkers({
      ports,
      logger,
      records: known,
      leftovers: () => leftoverPods(observer, owner),
      onGone: (pod) => {
        logger.info('Nothing is left of a pod', { pod: `${pod.metadata.namespace}/${pod.metadata.name}` });
        qosClasses.refresh();
      },
    });
    running = workers;
    undo.push(() => workers.close());

    const sources = new PodSources({ sources: podSources, nodeName, log: logger, events, metrics });
    const background = [
      observer.run(signal),
      link.run(signal),
      resync(workers, settings.resyncMs, { clock, signal }),
      sources.run(({ ready }) => {
        workers.setDesired(sources.pods, ready);
        qosClasses.refresh();
      }, signal),
    ];
    undo.push(() => Promise.allSettled(background));
    undo.push(() => events.flush());
    return { nodeName, workers, sources, events, link, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The widest mesh of the safety net: every pod is looked at now and then even if nothing was heard of it. */
async function resync(
  workers: PodWorkers,
  everyMs: number,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    await sleep(clock, everyMs, signal).catch(() => {});
    workers.wakeAll();
  }
}

function* leftoverPods(observer: RuntimeObserver, owner: Parameters<typeof isOurs>[1]): Generator<Pod> {
  for (const uid of observer.pods()) {
    const identity = observer.identity(uid);
    if (identity && isOurs(identity.annotations, owner)) yield podFromRuntime(observer.pod(uid), identity);
  }
}
