import assert from 'node:assert/strict';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { FakeRuntime } from '../../../test/fixtures/cri-runtime/fake-runtime.ts';
import { sandboxConfig } from '../../../test/fixtures/cri-runtime/requests.ts';
import { VirtualClock } from '../../concurrency/virtual-clock.ts';
import { mountsAtOrBelow } from '../../linux/mount-table.ts';
import { bindMount, mountTmpfs, unmountAtOrBelow } from '../../linux/mounts.ts';
import { silentLogger } from '../../telemetry/logger.ts';
import { MetricsRegistry } from '../../telemetry/metrics-registry.ts';
import type { ObservedContainer } from '../observed-pod.ts';
import { RuntimeErrorCode } from '../runtime-call-error.ts';
import { decideOrphans } from './orphans.ts';
import { PodGarbage, type PodGarbageOptions } from './pod-garbage.ts';

const minute = 60_000;
const podUidLabel = 'io.kubernetes.pod.uid';

describe('orphans', () => {
  const onDisk = [
    { uid: 'wanted', hasDirectory: true },
    { uid: 'ending', hasDirectory: true },
    { uid: 'foreign', hasDirectory: false },
    { uid: 'left', hasDirectory: true },
    { uid: 'logs', hasDirectory: false },
    { uid: 'lost+found', hasDirectory: true },
  ];
  const view = {
    onDisk,
    desired: new Set(['wanted']),
    isLookedAfter: (uid: string) => uid === 'ending',
    inRuntime: new Set(['foreign']),
    since: new Map<string, number>(),
  };

  it('are what nobody wants, looks after or runs, for a minute; for logs alone ten', () => {
    const first = decideOrphans(view, 0);
    assert.deepEqual(
      [first.erase, [...first.since]],
      [
        [],
        [
          ['left', 0],
          ['logs', 0],
        ],
      ],
    );
    const at = (now: number) => decideOrphans({ ...view, since: first.since }, now).erase;
    assert.deepEqual(at(minute - 1), []);
    assert.deepEqual(at(minute), ['left']);
    assert.deepEqual(at(10 * minute), ['left', 'logs']);
  });

  it('are nobody while a source has not been heard, and their time begins anew', () => {
    const { erase, since } = decideOrphans(
      { ...view, desired: undefined, since: new Map([['left', 0]]) },
      minute,
    );
    assert.deepEqual([erase, since.size], [[], 0]);
  });

  it('are never what somebody still has', () => {
    const uid = fc.constantFrom('a', 'b', 'c', 'd');
    const uids = fc.array(uid).map((list) => new Set<string>(list));
    fc.assert(
      fc.property(uids, uids, uids, uids, (disk, desired, active, inRuntime) => {
        const { erase } = decideOrphans(
          {
            onDisk: [...disk].map((one) => ({ uid: one, hasDirectory: true })),
            desired,
            isLookedAfter: (one) => active.has(one),
            inRuntime,
            since: new Map([...disk].map((one) => [one, 0])),
          },
          minute,
        );
        const expected = [...disk].filter(
          (one) => !desired.has(one) && !active.has(one) && !inRuntime.has(one),
        );
        assert.deepEqual(erase, expected);
      }),
    );
  });
});

describe('clearing away what pods left', () => {
  let base: string;
  let clock: VirtualClock;
  let metrics: MetricsRegistry;
  let runtime: FakeRuntime;
  let desired: Set<string> | undefined;
  let told: string[];
  const signal = new AbortController().signal;
  beforeEach(() => {
    base = mkdtempSync(join(tmpdir(), 'pod-garbage-'));
    clock = new VirtualClock();
    metrics = new MetricsRegistry();
    runtime = new FakeRuntime({ clock, images: ['busybox'] });
    desired = new Set();
    told = [];
    for (const name of ['pods', 'logs', 'links']) mkdirSync(join(base, name));
  });
  afterEach(() => rmSync(base, { recursive: true, force: true }));

  const at = (...parts: string[]) => join(base, ...parts);
  const put = (path: string, content = 'x') => {
    mkdirSync(join(at(path), '..'), { recursive: true });
    writeFileSync(at(path), content);
  };
  const garbage = (options: Partial<PodGarbageOptions> = {}) =>
    new PodGarbage({
      runtime,
      rules: { perContainer: 1, total: -1, minAgeMs: 0 },
      instances: () => [],
      removeContainer: () => assert.fail('no container is to be removed'),
      desired: () => desired,
      isLookedAfter: () => false,
      directories: {
        podDirectory: (uid) => at('pods', uid),
        podsOnDisk: async () => (await readdir(at('pods'))).map((uid) => ({ uid, hasDirectory: true })),
        eraseOrphan: (uid) => rm(at('pods', uid), { recursive: true }),
      },
      volumes: { tearDown: (uid) => rm(at('pods', uid, 'volumes'), { recursive: true, force: true }) },
      podLogsDirectory: at('logs'),
      containerLogsDirectory: at('links'),
      podUidLabel,
      nodeName: 'n',
      events: { event: (_object, _type, reason, message) => told.push(`${reason}: ${message}`) },
      metrics,
      clock,
      logger: { ...silentLogger, error: (_message, error) => told.push((error as Error).message) },
      ...options,
    });
  const twice = async (collecting: PodGarbage) => {
    await collecting.collect(signal);
    await clock.advance(minute);
    await collecting.collect(signal);
  };

  it('orphans go with the volumes that are theirs', async () => {
    put('pods/u1/volumes/kubernetes.io~empty-dir/cache/file');
    put('pods/u1/volumes/kubernetes.io~csi/pvc/vol_data.json');
    mkdirSync(at('pods/u1/volumes/kubernetes.io~csi/pvc/mount'));
    mkdirSync(at('pods/u1/volumes/kubernetes.io~nfs/share'), { recursive: true });
    put('pods/u2/etc-hosts');
    desired = new Set(['u2']);
    await twice(garbage());
    assert.deepEqual(await readdir(at('pods')), ['u2']);
    assert.deepEqual(told, []);
    assert.match(await metrics.exposition(), /^kubelet_orphan_pod_cleaned_volumes 1$/m);
  });

  for (const path of [
    'kubernetes.io~nfs/share/data',
    'kubernetes.io~csi/pvc/mount/data',
    'kubernetes.io~csi/pvc/x',
  ]) {
    it(`${path} may be somebody's data and keeps the pod; the others go`, async () => {
      put(`pods/u1/volumes/${path}`);
      put('pods/u1/volumes/kubernetes.io~empty-dir/cache/file');
      put('pods/u2/etc-hosts');
      const collecting = garbage();
      await twice(collecting);
      await collecting.collect(signal);
      assert.ok(existsSync(at('pods/u1/volumes', path)));
      assert.ok(existsSync(at('pods/u1/volumes/kubernetes.io~empty-dir/cache/file')));
      assert.deepEqual(await readdir(at('pods')), ['u1']);
      assert.equal(told.length, 1, 'told once');
      assert.match(await metrics.exposition(), /^kubelet_orphan_pod_cleaned_volumes_errors 1$/m);
      assert.match(told[0] ?? '', /the orphaned pod u1 stays: .* is not empty/);
    });
  }

  it('what is mounted is taken away, not emptied: a persistent volume keeps its content, also when it is busy', async () => {
    const volumes = 'pods/u1/volumes';
    const memory = `${volumes}/kubernetes.io~empty-dir/memory`;
    const share = `${volumes}/kubernetes.io~nfs/share`;
    for (const path of ['elsewhere', memory, share]) mkdirSync(at(path), { recursive: true });
    let held: number | undefined;
    try {
      await mountTmpfs(at('elsewhere'), ['size=1m']);
      put('elsewhere/data', 'precious');
      await mountTmpfs(at(memory), ['size=1m']);
      put(`${memory}/scratch`);
      await bindMount(at('elsewhere'), at(share));
      held = openSync(at(share, 'data'), 'r');
      await twice(garbage());
      assert.deepEqual(await readdir(at('pods')), []);
      assert.deepEqual(await mountsAtOrBelow(at('pods')), []);
      assert.equal(readFileSync(at('elsewhere/data'), 'utf8'), 'precious');
      assert.equal(readFileSync(held, 'utf8'), 'precious');
      assert.deepEqual(told, []);
    } finally {
      if (held !== undefined) closeSync(held);
      await unmountAtOrBelow(base);
    }
  });

  it('nothing goes while the runtime does not answer, or has anything of the pod', async () => {
    put('pods/uid-of-web/etc-hosts');
    await runtime.runPodSandbox({ config: sandboxConfig('web'), runtimeHandler: '' });
    const uid = runtime.sandboxes[0]?.config.metadata?.uid ?? '';
    put(`pods/${uid}/etc-hosts`);
    const collecting = garbage();
    await twice(collecting);
    assert.deepEqual(await readdir(at('pods')), [uid]);
    put('pods/u1/etc-hosts');
    await collecting.collect(signal);
    runtime.fail('ListContainers', { error: { code: RuntimeErrorCode.Unavailable, text: 'gone' } });
    await clock.advance(minute);
    await collecting.collect(signal);
    assert.ok(existsSync(at('pods/u1')));
  });

  it('links whose logs are gone go, unless the runtime knows the container or they lead elsewhere', async () => {
    const id = 'c'.repeat(64);
    const link = (name: string, target: string) => symlinkSync(target, at('links', name));
    put('logs/ns_web_u1/main/1.log');
    link(`web_ns_main-${id}.log`, at('logs/ns_web_u1/main/1.log'));
    link(`web_ns_main-${'d'.repeat(64)}.log`, at('logs/ns_web_u1/main/0.log'));
    link(`cut-name-without-id.log`, at('logs/ns_gone_u9/main/0.log'));
    link('elsewhere.log', at('elsewhere/ns_web_u1/main/0.log'));
    link('not-a-log', at('logs/ns_web_u1/main/0.log'));
    writeFileSync(at('links/file.log'), '');
    await garbage().collect(signal);
    assert.deepEqual((await readdir(at('links'))).sort(), [
      'elsewhere.log',
      'file.log',
      'not-a-log',
      `web_ns_main-${id}.log`,
    ]);
  });

  it('one dead container that cannot be removed is an event and keeps no other', async () => {
    const container = (id: string, createdAt: number): ObservedContainer => ({
      id,
      name: 'main',
      sandboxId: 's',
      attempt: 0,
      state: 'Exited',
      createdAt,
      image: '',
      imageId: '',
      hash: '',
      annotations: {},
    });
    const removed: string[] = [];
    const collecting = garbage({
      instances: () => [
        { uid: 'u', isGone: false, containers: [4, 3, 2, 1].map((n) => container(`c${n}`, n)) },
      ],
      async removeContainer({ container: { id } }) {
        if (id === 'c2') throw new Error('c2 is stuck');
        removed.push(id);
      },
    });
    await collecting.collect(signal);
    assert.deepEqual(removed, ['c1']);
    assert.deepEqual(told, ['ContainerGCFailed: c2 is stuck', 'c2 is stuck']);
  });

  it('runs once a minute until it is stopped', async () => {
    let rounds = 0;
    const controller = new AbortController();
    const running = garbage({ instances: () => (rounds++, []) }).run(controller.signal);
    await clock.advance(minute);
    while (clock.nextTimer() === undefined) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(rounds, 1);
    controller.abort();
    await running;
  });
});
