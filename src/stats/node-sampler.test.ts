import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { PlantedMachine, web } from './fixtures/planted-machine.ts';
import type { NodeSample } from './node-sample.ts';

describe('measuring when somebody asks', () => {
  let machine: PlantedMachine;
  beforeEach(() => {
    machine = new PlantedMachine(2);
  });
  afterEach(() => machine.remove());

  /** The first answer takes two looks, a moment apart. */
  async function first(detail: 'core' | 'all' = 'core'): Promise<NodeSample> {
    const asked = machine.sampler.sample(detail, 1000);
    await machine.clock.advance(200);
    return await asked;
  }

  const cores = (sample: NodeSample) => sample.pods[0]?.group?.nanoCores;

  it('does nothing by itself', async () => {
    await machine.clock.advance(3_600_000);
    assert.equal(machine.passes, 0);
    await first();
    const passes = machine.passes;
    await machine.clock.advance(3_600_000);
    assert.equal(machine.passes, passes);
    assert.equal(machine.clock.nextTimer(), undefined);
  });

  it('answers again from the same look until it is too old', async () => {
    const before = await first();
    await machine.clock.advance(1000);
    assert.equal(await machine.sampler.sample('core', 1000), before);
    await machine.clock.advance(1);
    const after = await machine.sampler.sample('core', 1000);
    assert.ok(after.at > before.at);
    assert.equal(machine.passes, 3);
  });

  it('looks again when the clock was set back', async () => {
    const before = await first();
    await machine.clock.advance(-10_000);
    assert.notEqual(await machine.sampler.sample('core', 1000), before);
  });

  it('gives those who ask together one look', async () => {
    const asked = [1, 2, 3].map(() => machine.sampler.sample('core', 0));
    await machine.clock.advance(200);
    const [one, two, three] = await Promise.all(asked);
    assert.ok(one === two && two === three);
    assert.equal(machine.passes, 2);
  });

  it('looks again for who wants more than was looked at', async () => {
    const core = await first();
    const all = await machine.sampler.sample('all', 1000);
    assert.notEqual(all, core);
    assert.equal(await machine.sampler.sample('core', 1000), all);
  });

  it('tells processor time a second from two looks', async () => {
    const cgroup = machine.podCgroup('burstable', web.uid);
    const used = 40_000_000_000;
    assert.equal(cores(await first()), 0);
    machine.useCpu(cgroup, used + 3_000_000_000);
    await machine.clock.advance(2000);
    assert.equal(cores(await machine.sampler.sample('core', 0)), 1_500_000_000);
    // A look a moment later says nothing new of it.
    await machine.clock.advance(50);
    machine.useCpu(cgroup, used + 3_050_000_000);
    assert.equal(cores(await machine.sampler.sample('core', 0)), 1_500_000_000);
    // After a long silence the average says nothing of now: it begins anew.
    await machine.clock.advance(700_000);
    machine.useCpu(cgroup, used + 4_000_000_000);
    const asked = machine.sampler.sample('core', 0);
    await machine.clock.advance(100);
    machine.useCpu(cgroup, used + 4_100_000_000);
    await machine.clock.advance(100);
    assert.equal(cores(await asked), 500_000_000);
  });

  it('measures what has just started from its beginning', async () => {
    await first();
    const [pod] = machine.pods;
    const startedAt = machine.clock.now() + 500;
    const cgroup = `${machine.podCgroup('burstable', web.uid)}/cri-containerd-${'dd'.repeat(32)}.scope`;
    machine.write(`unified${cgroup}/cpu.stat`, 'usage_usec 500000\n');
    machine.write(`unified${cgroup}/memory.stat`, 'anon 1\n');
    machine.pods = [{ ...pod!, containers: [{ ...pod!.containers[0]!, id: 'dd'.repeat(32), startedAt }] }];
    await machine.clock.advance(2500);
    const { pods } = await machine.sampler.sample('core', 0);
    assert.equal(pods[0]?.containers[0]?.nanoCores, 250_000_000);
  });

  it('leaves out what has gone, and what other programs have in the cgroup of a pod', async () => {
    rmSync(join(machine.directory, 'unified', machine.podCgroup('burstable', web.uid)), { recursive: true });
    const { pods } = await first();
    assert.equal(pods[0]?.group, undefined);
    assert.deepEqual(pods[0]?.containers, []);
    assert.equal(pods[1]?.containers.length, 1);
  });

  it('finds containers by their id under every name runtimes give cgroups', async () => {
    const base = machine.podCgroup('burstable', web.uid);
    const [pod] = machine.pods;
    for (const name of ['ID', 'docker-ID.scope', 'crio-ID.scope', 'crio-ID', 'cri-containerd-ID.scope']) {
      const id = name.length.toString(16).padStart(64, 'e');
      machine.write(`unified${base}/${name.replace('ID', id)}/cpu.stat`, 'usage_usec 1\n');
      machine.pods = [{ ...pod!, containers: [{ ...pod!.containers[0]!, id }] }];
      await machine.clock.advance(2000);
      const asked = machine.sampler.sample('core', 0);
      await machine.clock.advance(200);
      assert.equal((await asked).pods[0]?.containers.length, 1, name);
    }
  });
});
