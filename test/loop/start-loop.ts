/**
 * The whole loop of the agent in one process: workers, executors, observer, records, directories, volumes
 * and image puller are the real ones; the runtime is the fake one, time stands still until a test moves
 * it, and cgroups are left out.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { standAlone } from '../../src/agent/cluster/stand-alone.ts';
import { isOurs, podFromRuntime, rootAnnotation } from '../../src/agent/ownership.ts';
import { Limiter } from '../../src/concurrency/limiter.ts';
import type { Pod, PodStatus } from '../../src/kubernetes/types.ts';
import { announcements } from '../../src/pods/announcements.ts';
import { PodDirectories } from '../../src/pods/environment/pod-directories.ts';
import { executeWith, type StepHook } from '../../src/pods/executors/executors.ts';
import type { PodServices } from '../../src/pods/executors/pod-services.ts';
import { HookMetrics } from '../../src/pods/hooks/hook-metrics.ts';
import { NodePodConfigs } from '../../src/pods/pod-configs.ts';
import { PodRecords } from '../../src/pods/pod-records.ts';
import type { PodReport, PodWorkerPorts } from '../../src/pods/pod-worker-ports.ts';
import { PodWorkers, type PodWorkersOptions } from '../../src/pods/pod-workers.ts';
import { PullMessages } from '../../src/pods/pull-messages.ts';
import type { ProbeMemory } from '../../src/probes/probe-memory.ts';
import { Prober } from '../../src/probes/prober.ts';
import { ImagePuller } from '../../src/runtime/images/image-puller.ts';
import { RuntimeObserver } from '../../src/runtime/runtime-observer.ts';
import type { EventRecorder } from '../../src/telemetry/events.ts';
import { type Logger, silentLogger } from '../../src/telemetry/logger.ts';
import { silentMetrics } from '../../src/telemetry/metrics.ts';
import { PodVolumes } from '../../src/volumes/pod-volumes.ts';
import { createVolumeKinds } from '../../src/volumes/volume-kinds.ts';
import { Outside } from './outside.ts';
import { quiet, until } from './turns.ts';
import type { World } from './world.ts';

export interface LoopOptions {
  readonly world: World;
  readonly pods?: readonly Pod[];
  /** False while a source has not told everything yet; true by default. */
  readonly ready?: boolean;
  readonly outside?: Outside;
  readonly onStep?: StepHook;
  readonly sources?: readonly string[];
  /** Another agent on the same runtime has another root directory. */
  readonly root?: string;
  readonly networkNotReady?: () => string | undefined;
  readonly readMessages?: PodWorkerPorts['readMessages'];
  readonly memory?: ProbeMemory;
  readonly maxRestartBackoffMs?: number;
  /** `--restore-pods-offline` */
  readonly restoreOffline?: boolean;
  /** Given the loop's own recorder; every pod is admitted without. */
  readonly admission?: (recorder: EventRecorder) => NonNullable<PodWorkersOptions['admit']>;
  readonly onReport?: (report: PodReport) => void;
  readonly onGone?: (pod: Pod) => void;
  /** Takes every event too. */
  readonly recorder?: EventRecorder;
  /** Replaces parts of what the executors work with. */
  readonly services?: (services: PodServices) => Partial<PodServices>;
}

export interface TestLoop {
  readonly workers: PodWorkers;
  readonly observer: RuntimeObserver;
  readonly records: PodRecords;
  readonly directories: PodDirectories;
  /** `reason: message` of every event, in order. */
  readonly events: string[];
  readonly errors: string[];
  readonly reports: PodReport[];
  /** Pods that nothing is left of, by name, in order. */
  readonly gone: string[];
  /** Pods that came back while they were being ended, and pods of the runtime that nobody knew. */
  readonly restarted: string[];
  readonly orphans: string[];
  want(pods: readonly Pod[], ready?: boolean): void;
  status(pod: Pod): PodStatus | undefined;
  /** Waits, without moving time, until the pod is as `accept` says. */
  untilStatus(pod: Pod, what: string, accept: (status: PodStatus) => boolean): Promise<PodStatus>;
  untilRunning(...pods: readonly Pod[]): Promise<void>;
  untilGone(...pods: readonly Pod[]): Promise<void>;
  quiet(): Promise<void>;
  /** Moves time from timer to timer, with all that each one brings about. */
  pass(ms: number): Promise<void>;
  /** Lets go of everything in order, as at a normal stop of the agent. */
  stop(): Promise<void>;
  /** Drops dead: nothing gets out of it any more. */
  kill(): void;
}

export async function startLoop(options: LoopOptions): Promise<TestLoop> {
  const { world, outside = new Outside() } = options;
  const { clock } = world;
  const root = options.root ?? world.root;
  const runtime = outside.guard('', world.runtime);
  const stopping = new AbortController();
  const { signal } = stopping;
  const errors: string[] = [];
  const logger: Logger = {
    ...silentLogger,
    error: (message, error) => errors.push(`${message}: ${String(error)}`),
    with: () => logger,
  };
  const events: string[] = [];
  const recorder: EventRecorder = {
    event: (object, type, reason, message) => {
      events.push(`${reason}: ${message}`);
      options.recorder?.event(object, type, reason, message);
    },
  };

  let workers: PodWorkers | undefined;
  const observer = new RuntimeObserver({
    runtime,
    events: {
      name: 'fake',
      flowing: true,
      run: (listener, end) =>
        world.runtime.events().run((event) => {
          if (outside.isOpen) listener(event);
        }, end),
    },
    clock,
    logger,
    onChange: (uid) => {
      if (workers?.get(uid)) workers.wake(uid);
      else workers?.endLeftovers();
    },
  });
  const records = new PodRecords({ rootDirectory: root, clock, logger });
  const directories = new PodDirectories({
    rootDirectory: root,
    podLogsDirectory: path.join(root, 'logs', 'pods'),
    containerLogsDirectory: path.join(root, 'logs', 'containers'),
  });
  const services = buildServices({
    ...options,
    outside,
    root,
    runtime,
    observer,
    records,
    directories,
    recorder,
    logger,
  });

  const known = await records.readAll();
  await observer.relist(signal);
  const reports: PodReport[] = [];
  const prober = new Prober({
    clock,
    logger,
    events: recorder,
    metrics: silentMetrics,
    exec: runtime,
    memory: options.memory ?? { recall: () => undefined, remember() {}, forget() {} },
    hostIps: [],
    onChange: (uid) => workers?.wake(uid),
  });
  const ports: PodWorkerPorts = {
    clock,
    logger,
    runtimeName: 'containerd',
    hostIps: [],
    observe: (uid) => observer.pod(uid),
    health: (update) => prober.update(update),
    nodeRules: () => {
      const networkNotReady = options.networkNotReady?.();
      return {
        maxRestartBackoffMs: options.maxRestartBackoffMs ?? 300_000,
        deadContainersKept: 1,
        recordsDeletion: options.restoreOffline ?? false,
        restartAllContainers: false,
        ...(networkNotReady === undefined ? {} : { networkNotReady }),
      };
    },
    execute: executeWith(services, options.onStep),
    readMessages:
      options.readMessages ??
      ((pod, ids) => outside.pass('messages.read', () => lastWords(directories, observer, pod, ids))),
    report: (report) => {
      reports.push(report);
      options.onReport?.(report);
      for (const { reason, message } of announcements(report)) events.push(`${reason}: ${message}`);
    },
  };
  const owner = { rootDirectory: root, sources: new Set(options.sources ?? ['file', 'http']) };
  const gone: string[] = [];
  const restarted: string[] = [];
  const orphans: string[] = [];
  const running = new PodWorkers({
    ports,
    logger,
    records: known,
    ...(options.admission && { admit: options.admission(recorder) }),
    leftovers: function* () {
      for (const uid of observer.pods()) {
        const identity = observer.identity(uid);
        if (identity && isOurs(identity.annotations, owner))
          yield podFromRuntime(observer.pod(uid), identity);
      }
    },
    onRestart: (pod) => restarted.push(pod.metadata.name),
    onOrphan: (pod) => orphans.push(pod.metadata.name),
    onGone: (pod) => {
      prober.forget(pod.metadata.uid);
      gone.push(pod.metadata.name);
      options.onGone?.(pod);
    },
  });
  workers = running;
  const background = observer.run(signal);

  const rest = () =>
    quiet(
      () => outside.crossings.length,
      () => outside.busy,
    );
  const letGo = () => {
    running.close();
    prober.close();
    stopping.abort(new Error('the agent stops'));
  };
  outside.onClosed(letGo);
  const loop: TestLoop = {
    workers: running,
    observer,
    records,
    directories,
    events,
    errors,
    reports,
    gone,
    restarted,
    orphans,
    want: (pods, ready = true) =>
      running.setDesired(new Map(pods.map((pod) => [pod.metadata.uid, pod] as const)), ready),
    status: (pod) => running.get(pod.metadata.uid)?.status,
    async untilStatus(pod, what, accept) {
      const status = () => running.get(pod.metadata.uid)?.status;
      const tell = () =>
        JSON.stringify({ status: status(), plan: running.get(pod.metadata.uid)?.plan, errors });
      await until(
        () => accept(status() ?? {}),
        () => `${pod.metadata.name} never was ${what}: ${tell()}`,
      );
      return status() ?? {};
    },
    async untilRunning(...pods) {
      const isReady = (status: PodStatus) =>
        status.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true;
      for (const pod of pods) await loop.untilStatus(pod, 'ready', isReady);
    },
    async untilGone(...pods) {
      for (const { metadata } of pods) {
        await until(
          () => !running.get(metadata.uid),
          () =>
            `${metadata.name} never went: ${JSON.stringify(running.get(metadata.uid)?.plan)} ${errors.join()}`,
        );
      }
    },
    quiet: rest,
    async pass(ms) {
      const end = clock.now() + ms;
      await loop.quiet();
      for (let next = clock.nextTimer(); next !== undefined && next <= end; next = clock.nextTimer()) {
        await clock.advance(next - clock.now());
        await loop.quiet();
      }
      await clock.advance(end - clock.now());
      await loop.quiet();
    },
    async stop() {
      letGo();
      await background;
      await rest();
    },
    kill: () => outside.close(),
  };
  if (options.pods) loop.want(options.pods, options.ready);
  return loop;
}

function buildServices(
  input: LoopOptions & {
    outside: Outside;
    root: string;
    runtime: World['runtime'];
    observer: RuntimeObserver;
    records: PodRecords;
    directories: PodDirectories;
    recorder: EventRecorder;
    logger: Logger;
  },
): PodServices {
  const { world, outside, root, runtime, observer, records, directories, recorder, logger } = input;
  const { clock } = world;
  const configs = new NodePodConfigs({
    nodeName: 'node',
    nodeAddresses: () => ['192.0.2.1'],
    nodeAllocatable: new Map(),
    dns: { clusterDns: [], clusterDomain: '', nodeIps: ['192.0.2.1'] },
    resolvConf: undefined,
    resources: {
      cgroupVersion: 2,
      nodeMemoryBytes: 2 ** 33,
      cpuQuota: { enabled: true, periodUs: 100_000 },
      hugePageSizes: [],
      swap: { controllerAvailable: false, behavior: 'NoSwap', totalBytes: 0 },
      singleProcessOomKill: false,
    },
    security: { rootDirectory: root, seccompDefault: false, thermalThrottlePaths: [] },
    stopSignals: false,
    recursiveReadOnly: () => false,
    sandboxAnnotations: { [rootAnnotation]: root },
    cgroupParentOf: () => '',
    directories,
    volumes: outside.guard(
      'volumes.',
      new PodVolumes({
        rootDirectory: root,
        kinds: createVolumeKinds({ nodeAllocatableMemory: () => 2 ** 30 }),
      }),
    ),
    images: new ImagePuller({ images: runtime, clock }),
    pullMessages: new PullMessages(() => {}),
    credentialsFor: async () => [],
    cluster: standAlone().objects,
    events: recorder,
  });
  const services: PodServices = {
    runtime,
    observer,
    images: configs,
    configs: {
      runtimeHandler: (pod) => configs.runtimeHandler(pod),
      sandbox: (pod, attempt) => outside.pass('configs.sandbox', () => configs.sandbox(pod, attempt)),
      container: (request) => outside.pass('configs.container', () => configs.container(request)),
    },
    volumes: configs,
    cgroups: outside.guard('cgroups.', { ensurePod: async () => {}, removePod: async () => {} }),
    files: outside.guard('files.', directories),
    records: outside.guard('records.', records),
    calls: new Limiter({ limit: 4, holdMs: 1000, clock }),
    events: recorder,
    hookMetrics: new HookMetrics(silentMetrics),
    clock,
    logger,
  };
  return { ...services, ...input.services?.(services) };
}

async function lastWords(
  directories: PodDirectories,
  observer: RuntimeObserver,
  { metadata: { uid } }: Pod,
  ids: readonly string[],
): Promise<Record<string, string>> {
  const wanted = observer.pod(uid).containers.filter(({ id }) => ids.includes(id));
  const read = wanted.map(async ({ id, name, attempt }) => {
    const file = directories.terminationMessageFile(uid, name, attempt);
    return [id, await readFile(file, 'utf8').catch(() => '')] as const;
  });
  return Object.fromEntries(await Promise.all(read));
}

/** Fails when anything of the loop would still fire. */
export function assertNoTimers({ clock }: World): void {
  assert.equal(clock.nextTimer(), undefined, 'a timer is left');
}
