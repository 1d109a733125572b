/** Builds the workers of pods, and joins them with all that they tell and are told. */
import { podKey } from '../kubernetes/pod-identity.ts';
import type { Pod } from '../kubernetes/types.ts';
import { PodMetrics } from '../pods/pod-metrics.ts';
import type { PodRecord } from '../pods/pod-records.ts';
import { PodWorkers } from '../pods/pod-workers.ts';
import type { Prober } from '../probes/prober.ts';
import type { RuntimeObserver } from '../runtime/runtime-observer.ts';
import type { PodSource } from '../sources/pod-source.ts';
import type { AgentContext } from './agent-context.ts';
import type { Membership } from './cluster/membership.ts';
import { isOurs, type Owner, podFromRuntime } from './ownership.ts';
import type { BuiltPodServices } from './pod-services-builder.ts';
import type { RuntimeRooms } from './runtime-builder.ts';
import { workerPorts } from './worker-ports.ts';

export interface WorkersInput {
  readonly built: BuiltPodServices;
  readonly runtime: RuntimeRooms;
  readonly membership: Membership;
  readonly prober: Prober;
  /** Of an earlier agent. */
  readonly recorded: readonly PodRecord[];
  readonly podSources: readonly Pick<PodSource, 'name'>[];
  /** Nothing is left of some pod. */
  readonly onGone: () => void;
}

/** Workers that nobody has told yet which pods are wanted. */
export function buildWorkers(context: AgentContext, input: WorkersInput): PodWorkers {
  const { settings, clock, logger, metrics, lifetime, rooms } = context;
  const { built, runtime, membership, prober, recorded, podSources, onGone } = input;
  const { link, observer, name: runtimeName } = runtime;
  const { changes } = rooms;
  const podMetrics = new PodMetrics({ metrics, clock });
  const owner: Owner = {
    rootDirectory: settings.rootDirectory,
    sources: new Set(podSources.map(({ name }) => name)),
  };
  const workers = new PodWorkers({
    ports: workerPorts(context, {
      built,
      link,
      membership,
      observer,
      prober,
      podMetrics,
      changes,
      runtimeName,
    }),
    logger,
    records: recorded,
    leftovers: () => leftoverPods(observer, owner),
    admit: (pod, occupants, held) => built.admission.decide(pod, occupants, held),
    onOrphan: () => podMetrics.orphaned(),
    onRestart: (pod) => podMetrics.restarted(pod),
    onGone: (pod) => {
      const { uid } = pod.metadata;
      logger.info('Nothing is left of a pod', { pod: podKey(pod), podUID: uid });
      prober.forget(uid);
      membership.pods.gone(pod);
      podMetrics.forget(uid);
      changes.tell(uid);
      onGone();
    },
  });
  rooms.workers = workers;
  membership.attach({ workers, volumes: built.volumes });
  lifetime.onEnd(() => workers.close());
  return workers;
}

function* leftoverPods(observer: RuntimeObserver, owner: Owner): Generator<Pod> {
  for (const uid of observer.pods()) {
    const identity = observer.identity(uid);
    if (identity && isOurs(identity.annotations, owner)) yield podFromRuntime(observer.pod(uid), identity);
  }
}
