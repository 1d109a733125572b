import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '../concurrency/clock.ts';
import { amountsOf } from '../kubernetes/pod-resources.ts';
import type { Pod } from '../kubernetes/types.ts';
import { CgroupHierarchy, type CgroupSetting } from '../linux/cgroupfs.ts';
import { SystemdSlices } from '../linux/systemd-slices.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { PodCgroupError, PodCgroups } from './pod-cgroups.ts';

function pod(uid: string, resources: Record<string, Record<string, string>> = {}): Pod {
  return {
    metadata: { name: uid, namespace: 'default', uid },
    spec: {
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'Default',
      containers: [{ name: 'main', resources }],
    },
  };
}

const guaranteed = pod('11-aa', { limits: { cpu: '500m', memory: '64Mi' } });
const burstable = pod('22-bb', { requests: { cpu: '250m' } });
const bestEffort = pod('33-cc');

for (const driver of ['cgroupfs', 'systemd'] as const) {
  describe(`pod cgroups of this machine, named by the ${driver} driver`, () => {
    const root = `kubelettest${process.pid}${driver}`;
    let hierarchy: CgroupHierarchy;
    let cgroups: PodCgroups;

    const open = (more: { podPidsLimit?: number } = {}) =>
      new PodCgroups({
        hierarchy,
        driver,
        cgroupRoot: `/${root}`,
        pod: {
          cpuCfsQuota: true,
          cpuPeriod: 100_000,
          podPidsLimit: more.podPidsLimit ?? 500,
          hugePageSizes: [],
        },
        share: amountsOf({ cpu: '1500m', memory: '4Gi' }),
        enforced: true,
        pidsMax: 10_000,
        logger: silentLogger,
      });
    const base = driver === 'cgroupfs' ? `/${root}` : `/${root}.slice`;
    const file = async (cgroup: string, v1: string, v2: string) =>
      await hierarchy.read(cgroup, hierarchy.version === 1 ? v1 : v2);

    before(async () => {
      hierarchy = await CgroupHierarchy.open(systemClock);
      cgroups = open();
    });
    after(async () => await hierarchy.remove(base));

    it('are made with their limits, and again after a restart', async () => {
      await cgroups.ensureRoot();
      await open().ensureRoot();
      const [kubepods] = await hierarchy.children(base);
      assert.equal(kubepods, driver === 'cgroupfs' ? 'kubepods' : `${root}-kubepods.slice`);
      const memory = await file(`${base}/${kubepods}`, 'memory.limit_in_bytes', 'memory.max');
      assert.equal(memory, String(2 ** 32));
      assert.equal(await hierarchy.read(`${base}/${kubepods}`, 'pids.max'), '10000');

      for (const each of [guaranteed, burstable, bestEffort]) await cgroups.ensurePod(each);
      await open().ensurePod(guaranteed);
      const path = cgroups.pathOf(guaranteed);
      assert.equal(await file(path, 'memory.limit_in_bytes', 'memory.max'), String(2 ** 26));
      assert.equal(await file(path, 'cpu.shares', 'cpu.weight'), hierarchy.version === 1 ? '512' : '20');
      assert.equal(
        await file(path, 'cpu.cfs_quota_us', 'cpu.max'),
        hierarchy.version === 1 ? '50000' : '50000 100000',
      );
      assert.equal(await hierarchy.read(path, 'pids.max'), '500');
    });

    it('are found again by uid and class', async () => {
      const found = (await open().existing()).map(({ uid, qos }) => `${uid} ${qos}`);
      assert.deepEqual(found.sort(), ['11-aa Guaranteed', '22-bb Burstable', '33-cc BestEffort']);
    });

    it('give the Burstable class the sum of its pods', async () => {
      await cgroups.updateQos([guaranteed, burstable, bestEffort]);
      const parent = cgroups.pathOf(burstable).slice(0, cgroups.pathOf(burstable).lastIndexOf('/'));
      const expected = { 1: '256', 2: '10' }[hierarchy.version];
      assert.equal(await file(parent, 'cpu.shares', 'cpu.weight'), expected);
    });

    it('tell the runtime where to put the pod', () => {
      const parent = cgroups.parentOf(burstable);
      const expected =
        driver === 'cgroupfs'
          ? `/${root}/kubepods/burstable/pod22-bb`
          : `${root}-kubepods-burstable-pod22_bb.slice`;
      assert.equal(parent, expected);
    });

    it('are removed with what runs in them, with or without knowing the class', async () => {
      const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
      await once(child, 'spawn');
      await hierarchy.create(`${cgroups.pathOf(burstable)}/container`);
      await hierarchy.enter(`${cgroups.pathOf(burstable)}/container`, child.pid!);
      const ended = once(child, 'exit');
      await cgroups.removePod('22-bb');
      await ended;
      await cgroups.removePod('22-bb');
      await cgroups.removePod('11-aa', { qos: 'Guaranteed' });
      assert.deepEqual(await cgroups.existing(), [{ uid: '33-cc', qos: 'BestEffort' }]);
    });

    it('are errors that name the pod when the kernel refuses', async () => {
      // More processes than the kernel can number.
      const impossible = open({ podPidsLimit: 2 ** 31 });
      await assert.rejects(impossible.ensurePod(pod('44-dd')), (error) => {
        assert.ok(error instanceof PodCgroupError);
        assert.match(error.message, /pod default\/44-dd \(44-dd\)/);
        return true;
      });
      await cgroups.removePod('44-dd');
    });
  });
}

it('tells systemd about slices where it runs', async () => {
  const calls: string[][] = [];
  const hierarchy = await CgroupHierarchy.open(systemClock);
  const root = `kubelettest${process.pid}units`;
  const cgroups = new PodCgroups({
    hierarchy,
    driver: 'systemd',
    cgroupRoot: `/${root}`,
    systemd: new SystemdSlices(async (args) => void calls.push([...args])),
    pod: { cpuCfsQuota: true, cpuPeriod: 100_000, podPidsLimit: -1, hugePageSizes: [] },
    share: amountsOf({ cpu: '1', memory: '1Gi' }),
    enforced: true,
    logger: silentLogger,
  });
  try {
    await cgroups.ensureRoot();
    await cgroups.ensurePod(bestEffort);
    await cgroups.removePod('33-cc');
    const seen = calls.map((args) => `${args[4]} ${args.find((arg) => arg.endsWith('.slice'))}`);
    assert.deepEqual(seen, [
      `StartTransientUnit ${root}-kubepods.slice`,
      `StartTransientUnit ${root}-kubepods-burstable.slice`,
      `StartTransientUnit ${root}-kubepods-besteffort.slice`,
      `StartTransientUnit ${root}-kubepods-besteffort-pod33_cc.slice`,
      `StopUnit ${root}-kubepods-besteffort-pod33_cc.slice`,
    ]);
  } finally {
    await hierarchy.remove(`/${root}.slice`);
  }
});

/** A cgroup v2 tree that keeps what is written to it. */
class Recorded extends CgroupHierarchy {
  readonly values = new Map<string, string>();
  writes = 0;
  constructor() {
    super({ mode: 'v2', unified: '/nowhere', trees: new Map() }, systemClock);
  }
  override async exists(): Promise<boolean> {
    return true;
  }
  override async create(): Promise<void> {}
  override async write(cgroup: string, settings: readonly CgroupSetting[]): Promise<string[]> {
    this.writes++;
    for (const { file, value } of settings) this.values.set(`${cgroup} ${file}`, value);
    return [];
  }
}

describe('memory that is kept for pods', () => {
  const open = (hierarchy: CgroupHierarchy, protectMemory: boolean, kept: unknown[] = []) =>
    new PodCgroups({
      hierarchy,
      driver: 'cgroupfs',
      cgroupRoot: '/',
      pod: { cpuCfsQuota: true, cpuPeriod: 100_000, podPidsLimit: -1, hugePageSizes: [], protectMemory },
      share: amountsOf({ cpu: '1', memory: '4Gi' }),
      enforced: true,
      onProtected: (memory) => kept.push(memory),
      logger: silentLogger,
    });
  const hungry = pod('44-dd', { requests: { memory: '16Mi' } });

  it('is kept on every level above them, and given back by an agent that keeps none', async () => {
    const hierarchy = new Recorded();
    const kept: unknown[] = [];
    const cgroups = open(hierarchy, true, kept);
    await cgroups.ensureRoot();
    await cgroups.ensurePod(guaranteed);
    await cgroups.ensurePod(hungry);
    await cgroups.updateQos([guaranteed, hungry]);
    const of = (cgroup: string) =>
      ['memory.min', 'memory.low'].map((file) => hierarchy.values.get(`${cgroup} ${file}`));
    const all = [String(2 ** 26), String(2 ** 24)];
    assert.deepEqual(of('/kubepods'), all);
    assert.deepEqual(of('/kubepods/burstable'), [undefined, all[1]]);
    assert.deepEqual(of(cgroups.pathOf(guaranteed)), [all[0], undefined]);
    assert.deepEqual(of(cgroups.pathOf(hungry)), [undefined, all[1]]);
    assert.deepEqual(kept.at(-1), { memoryMin: 2 ** 26, memoryLow: 2 ** 24 });
    assert.equal(hierarchy.values.get('/kubepods memory.max'), String(2 ** 32));

    const { writes } = hierarchy;
    await cgroups.updateQos([guaranteed, hungry]);
    assert.equal(hierarchy.writes, writes, 'nothing is written twice');

    await open(hierarchy, false).ensureRoot();
    assert.deepEqual(of('/kubepods'), ['0', '0']);
    assert.deepEqual(of('/kubepods/burstable'), [undefined, '0']);
  });
});
