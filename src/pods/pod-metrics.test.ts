import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import type { Pod } from '../kubernetes/types.ts';
import type { ObservedContainer } from '../runtime/observed-pod.ts';
import { MetricsRegistry } from '../telemetry/metrics-registry.ts';
import type { Action } from './action.ts';
import { PodMetrics } from './pod-metrics.ts';
import type { ActionContext, PodReport } from './pod-worker-ports.ts';
import type { Outcome } from './remember.ts';

const start = Date.UTC(2026, 0, 1);

function pod(more: Partial<Pod['metadata']> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'web',
      namespace: 'default',
      uid: 'u',
      creationTimestamp: new Date(start).toISOString(),
      annotations: {
        'kubernetes.io/config.source': 'api',
        'kubernetes.io/config.seen': new Date(start + 1000).toISOString(),
      },
      ...more,
    },
    spec: { containers: [{ name: 'main', image: 'i' }], initContainers: [{ name: 'setup', image: 'i' }] },
  } as Pod;
}

const instance = (more: Partial<ObservedContainer>): ObservedContainer => ({
  id: 'c',
  name: 'main',
  sandboxId: 's',
  attempt: 0,
  state: 'Running',
  createdAt: start,
  image: 'i',
  imageId: 'i',
  hash: '',
  annotations: {},
  ...more,
});

describe('metrics of the life of pods', () => {
  let clock: VirtualClock;
  let registry: MetricsRegistry;
  let metrics: PodMetrics;
  beforeEach(() => {
    clock = new VirtualClock(start);
    registry = new MetricsRegistry();
    metrics = new PodMetrics({ metrics: registry, clock });
  });

  const act = async (
    action: Action,
    outcome: Outcome = { ok: true },
    { ms = 0, aborted = false, of = pod() } = {},
  ) => {
    const execute = metrics.around(async () => {
      await clock.advance(ms);
      return outcome;
    });
    const signal = aborted ? AbortSignal.abort() : new AbortController().signal;
    await execute(action, { pod: of, signal } as ActionContext);
  };

  const report = (containers: readonly ObservedContainer[], of = pod()) => {
    const observed = { uid: 'u', name: 'web', namespace: 'default', sandboxes: [], containers };
    metrics.report({ pod: of, view: { observed, now: clock.now() } as unknown as PodReport['view'] });
  };

  /** The value of a series by its text before the space. */
  async function value(series: string): Promise<number | undefined> {
    const line = (await registry.exposition()).split('\n').find((each) => each.startsWith(`${series} `));
    return line === undefined ? undefined : Number(line.slice(series.length));
  }

  it('counts sandboxes and containers that are started, and those that cannot be', async () => {
    await act({ kind: 'create-sandbox', attempt: 0, reason: '' });
    await act({ kind: 'create-sandbox', attempt: 0, reason: '' }, { ok: false, reason: 'X', message: '' });
    const pull: Action = { kind: 'ensure-image', container: 'main', attempt: 0, reason: '' };
    await act(pull, { ok: false, reason: 'ErrImagePull', message: '' });
    await act(pull);
    await act({
      kind: 'create-container',
      container: 'setup',
      attempt: 0,
      sandboxId: 's',
      imageRef: 'i',
      nextBackoffMs: 0,
      reason: '',
    });
    assert.equal(await value('kubelet_started_pods_total'), 2);
    assert.equal(await value('kubelet_started_pods_errors_total'), 1);
    assert.equal(await value('kubelet_started_containers_total{container_type="container"}'), 1);
    assert.equal(await value('kubelet_started_containers_total{container_type="init_container"}'), 1);
    const failed = 'kubelet_started_containers_errors_total{container_type="container",code="ErrImagePull"}';
    assert.equal(await value(failed), 1);
  });

  it('counts images that containers mount', async () => {
    const of = pod();
    of.spec.volumes = [
      { name: 'tools', image: { reference: 'i' } },
      { name: 'data', emptyDir: {} },
    ];
    const volumeMounts = ['tools', 'data', 'tools'].map((name, n) => ({ name, mountPath: `/${n}` }));
    of.spec.containers = [{ name: 'main', image: 'i', volumeMounts }];
    const create: Action = {
      kind: 'create-container',
      container: 'main',
      attempt: 0,
      sandboxId: 's',
      imageRef: 'i',
      nextBackoffMs: 0,
      reason: '',
    };
    await act(create, { ok: false, reason: 'X', message: '' }, { of });
    await act(create, { ok: true }, { of });
    assert.equal(await value('kubelet_image_volume_requested_total'), 4);
    assert.equal(await value('kubelet_image_volume_mounted_succeed_total'), 2);
    assert.equal(await value('kubelet_image_volume_mounted_errors_total'), 2);
  });

  it('counts orphans, and pods that came back', async () => {
    metrics.orphaned();
    metrics.restarted(pod());
    metrics.restarted(pod({ annotations: { 'kubernetes.io/config.source': 'file' } }));
    assert.equal(await value('kubelet_orphaned_runtime_pods_total'), 1);
    assert.equal(await value('kubelet_restarted_pods_total{static=""}'), 1);
    assert.equal(await value('kubelet_restarted_pods_total{static="true"}'), 1);
  });

  it('does not count what was given up as failed', async () => {
    await act(
      { kind: 'create-sandbox', attempt: 0, reason: '' },
      { ok: false, reason: 'X', message: '' },
      { aborted: true },
    );
    assert.equal(await value('kubelet_started_pods_total'), 0);
  });

  it('takes the time of a start without pulls and init containers, once', async () => {
    report([]);
    await clock.advance(2000);
    await act({ kind: 'prepare-pod', reason: '' });
    await act(
      { kind: 'ensure-image', container: 'setup', attempt: 0, reason: '' },
      { ok: true },
      { ms: 4000 },
    );
    await clock.advance(10_000);
    const setup = { id: 'i', name: 'setup', state: 'Exited', exitCode: 0, reason: 'Completed' } as const;
    const containers = [
      instance({ startedAt: clock.now() }),
      instance({ ...setup, startedAt: start + 6000, finishedAt: start + 9000 }),
    ];
    report(containers);
    report(containers);
    assert.equal(await value('kubelet_pod_start_duration_seconds_sum'), 15);
    assert.equal(await value('kubelet_pod_start_total_duration_seconds_sum'), 16);
    assert.equal(await value('kubelet_pod_start_sli_duration_seconds_sum'), 9);
    assert.equal(await value('kubelet_pod_start_sli_duration_seconds_count'), 1);
    assert.equal(await value('kubelet_first_network_pod_start_sli_duration_seconds'), 9);
    assert.equal(await value('kubelet_pod_worker_start_duration_seconds_sum'), 1);
    assert.equal(await value('kubelet_pod_worker_duration_seconds_sum{operation_type="create"}'), 4);
    assert.equal(await value('kubelet_containers_per_pod_count_bucket{le="1"}'), 1);
  });

  it('does not count the start of what an earlier agent started', async () => {
    report([instance({ startedAt: start - 5000 })]);
    assert.equal(await value('kubelet_pod_start_duration_seconds_count'), 0);
    assert.equal(await value('kubelet_containers_per_pod_count_count'), 0);
  });

  it('does not hold the creation of a static pod against the node', async () => {
    const annotations = { 'kubernetes.io/config.source': 'file' };
    report([], pod({ annotations }));
    await clock.advance(3000);
    report([instance({ startedAt: clock.now() })], pod({ annotations }));
    assert.equal(await value('kubelet_pod_start_duration_seconds_sum'), 3);
    assert.equal(await value('kubelet_pod_start_sli_duration_seconds_count'), 0);
  });

  it('counts an end that it saw coming, once', async () => {
    const ended = instance({ state: 'Exited', exitCode: 137, reason: 'OOMKilled' });
    const series =
      'kubelet_terminated_containers_total{container_type="container",exit_code="137",reason="OOMKilled"}';
    report([ended]);
    assert.equal(await value(series), undefined, 'it had ended before');
    report([instance({ id: 'd' })]);
    report([instance({ ...ended, id: 'd' })]);
    report([instance({ ...ended, id: 'd' })]);
    assert.equal(await value(series), 1);
  });
});
