/** The loop as a member of a cluster: its pods come from an API server in memory, which is told of them. */
import { rememberedPods } from '../../src/agent/cluster/remembered-pods.ts';
import type { ApiClient } from '../../src/client/api-client.ts';
import type { Pod, PodManifest, PodSpec } from '../../src/kubernetes/types.ts';
import type { MemoryApi } from '../../src/pods/fixtures/memory-api.ts';
import { ApiEvents } from '../../src/pods/report/api-events.ts';
import { MirrorPods } from '../../src/pods/report/mirror-pods.ts';
import { PodObjects } from '../../src/pods/report/pod-objects.ts';
import { StatusReporter } from '../../src/pods/report/status-reporter.ts';
import { ApiSource } from '../../src/sources/api-source.ts';
import type { PodSource } from '../../src/sources/pod-source.ts';
import { PodSources } from '../../src/sources/pod-sources.ts';
import { silentEvents } from '../../src/telemetry/events.ts';
import { silentLogger } from '../../src/telemetry/logger.ts';
import { silentMetrics } from '../../src/telemetry/metrics.ts';
import { Outside } from './outside.ts';
import { type LoopOptions, startLoop, type TestLoop } from './start-loop.ts';

export interface ApiLoop extends TestLoop {
  readonly reporter: StatusReporter;
  /** Static pods beside those of the API server. */
  setStatic(pods: readonly Pod[]): void;
}

export async function startApiLoop(
  options: LoopOptions & { api: MemoryApi; staticPods?: readonly Pod[] },
): Promise<ApiLoop> {
  const { world, api, outside = new Outside(), staticPods = [] } = options;
  const { clock } = world;
  const logger = silentLogger;
  const through: Pick<ApiClient, 'request'> = outside.guard('api.', { request: api.request.bind(api) });
  const objects = new PodObjects();
  const reporter = new StatusReporter({ api: through, objects, clock, logger, metrics: silentMetrics });
  const events = new ApiEvents({ api: through, nodeName: 'node', clock, logger, qps: 50, burst: 100 });
  let mirrors: MirrorPods | undefined;
  const loop = await startLoop({
    ...options,
    outside,
    sources: ['file', 'api'],
    recorder: events,
    services: () => ({ objects: reporter }),
    onReport: (report) => {
      reporter.report(report);
      mirrors?.podChanged({ pod: report.pod, intent: report.view.intent });
    },
    onGone: (pod) => {
      reporter.forget(pod.metadata.uid);
      mirrors?.podGone(pod);
    },
  });
  mirrors = new MirrorPods({
    api: through,
    objects,
    pods: loop.workers,
    nodeName: 'node',
    nodeUid: () => 'node-uid',
    onMade: (object) => reporter.objectsChanged({ set: [object], removed: [] }),
    clock,
    logger,
    metrics: silentMetrics,
  });
  const keeper = mirrors;
  let setStatic: (pods: readonly Pod[]) => void = () => {};
  const file: PodSource = {
    name: 'file',
    run: (listener, signal) => {
      setStatic = (pods) => listener({ source: 'file', pods, errors: [], complete: true });
      setStatic(staticPods);
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
    },
  };
  const observe = (uid: string) => loop.observer.pod(uid);
  const offline = options.restoreOffline ?? false;
  const source = new ApiSource({
    nodeName: 'node',
    remembered: rememberedPods(await loop.records.readAll(), observe, { offline }),
    clock,
    reflector: ({ onChange }) =>
      api.reflector({
        onChange: (change) => {
          if (outside.isOpen) onChange(change);
        },
      }),
    onObjects: (change) => {
      objects.follow(change);
      reporter.objectsChanged(change);
      keeper.objectsChanged(change);
    },
  });
  const sources = new PodSources({
    sources: [file, source],
    nodeName: 'node',
    log: logger,
    events: silentEvents,
    metrics: silentMetrics,
  });
  const ending = new AbortController();
  const letGo = () => {
    reporter.close();
    keeper.close();
    events.close();
    ending.abort();
  };
  outside.onClosed(letGo);
  let wasReady = false;
  void sources.run(({ ready }) => {
    loop.want([...sources.pods.values()], ready);
    if (ready && !wasReady) keeper.refresh();
    wasReady = ready;
  }, ending.signal);
  return {
    ...loop,
    reporter,
    setStatic: (pods) => setStatic(pods),
    async stop() {
      letGo();
      await loop.stop();
    },
  };
}

/** A pod as the scheduler leaves it on this node. */
export function boundPod(name: string, spec: Partial<PodSpec> = {}, uid?: string): PodManifest {
  return {
    metadata: { name, namespace: 'default', ...(uid !== undefined && { uid }) },
    spec: {
      nodeName: 'node',
      dnsPolicy: 'Default',
      containers: [{ name: 'web', image: 'web', imagePullPolicy: 'IfNotPresent' }],
      ...spec,
    },
  };
}
