import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, it } from 'node:test';
import { PlantedMachine, plantedAt, plantedDisks, web } from './fixtures/planted-machine.ts';
import { cpuAndMemorySummary, fullSummary } from './summary.ts';
import type { Summary } from './summary-types.ts';
import type { MeasuredVolume } from './volume-source.ts';

const MiB = 1024 * 1024;

const volumes: readonly MeasuredVolume[] = [
  {
    name: 'scratch',
    ephemeral: true,
    at: plantedAt,
    usedBytes: 1000,
    capacityBytes: 100_000_000,
    availableBytes: 60_000_000,
    inodes: 5000,
    inodesFree: 4000,
    inodesUsed: 3,
  },
  {
    name: 'data',
    ephemeral: false,
    claim: { name: 'orders', namespace: 'shop' },
    at: plantedAt,
    usedBytes: 5_000_000,
    abnormal: false,
  },
];

/** `UPDATE_GOLDEN=1` writes the files anew; look at the difference before it is committed. */
function equalsGolden(name: string, summary: Summary): void {
  const file = join(import.meta.dirname, 'fixtures', name);
  const text = `${JSON.stringify(summary, null, 2)}\n`;
  if (process.env['UPDATE_GOLDEN']) writeFileSync(file, text);
  assert.deepEqual(JSON.parse(text), JSON.parse(readFileSync(file, 'utf8')));
}

for (const version of [1, 2] as const) {
  describe(`the summary of a machine with cgroup v${version}`, () => {
    let machine: PlantedMachine;
    afterEach(() => machine.remove());

    async function measured() {
      machine = new PlantedMachine(version);
      const sampling = machine.sampler.sample('core', 1000);
      await machine.clock.advance(200);
      return await sampling;
    }

    it('equals the golden file', async () => {
      const sample = await measured();
      const summary = fullSummary('node', sample, plantedDisks(), (uid) => (uid === web.uid ? volumes : []));
      equalsGolden(`summary-v${version}.json`, summary);
    });

    it('tells what the files say, in the units of Kubernetes', async () => {
      const { node, pods } = fullSummary('node', await measured(), plantedDisks(), () => []);
      assert.equal(node.cpu?.usageCoreNanoSeconds, 500_000_000_000);
      // v1 counts the root cgroup; on v2 it is what the machine does not have free.
      const used = version === 1 ? 4000 * MiB : 6_000_000 * 1024;
      assert.equal(node.memory?.workingSetBytes, used - 1000 * MiB);
      assert.equal(node.memory?.availableBytes, 8_000_000 * 1024 - (used - 1000 * MiB));
      assert.equal(node.swap?.swapUsageBytes, 250_000 * 1024);
      assert.deepEqual(node.rlimit, { time: '2026-01-02T03:04:05Z', maxpid: 62_000, curproc: 345 });
      assert.equal(node.network?.name, 'ens3');
      assert.deepEqual(
        node.network?.interfaces?.map(({ name }) => name),
        ['ens3', 'cni0'],
      );
      assert.deepEqual(
        node.systemContainers?.map(({ name }) => name),
        ['kubelet', 'runtime', 'pods'],
      );
      assert.equal(node.startTime, '2025-10-09T08:53:20Z');

      const [first, second] = pods;
      assert.equal(first?.memory?.workingSetBytes, 200 * MiB);
      assert.equal(first?.memory?.availableBytes, 56 * MiB);
      assert.equal(first?.process_stats?.process_count, 7);
      assert.equal(first?.network?.rxBytes, 123_456);
      assert.equal(first?.network?.txErrors, 7);
      assert.equal(first?.swap?.swapUsageBytes, 4 * MiB);
      assert.equal(first?.swap?.swapAvailableBytes, 60 * MiB);
      assert.equal(first?.['ephemeral-storage']?.usedBytes, 12_288 + 4096);
      assert.equal(second?.network, undefined, 'a pod on the host has no network of its own');
      assert.equal(second?.memory?.availableBytes, undefined, 'nothing is left of no limit');
      assert.equal(first?.cpu?.psi?.some.avg10, version === 2 ? 2 : undefined);
      assert.equal(first?.containers[0]?.io?.psi?.full.total, version === 2 ? 2000 : undefined);
    });

    it('leaves out disks and networks when only cpu and memory are asked for', async () => {
      const { node, pods } = cpuAndMemorySummary('node', await measured());
      assert.deepEqual(Object.keys(node).sort(), [
        'cpu',
        'memory',
        'nodeName',
        'startTime',
        'swap',
        'systemContainers',
      ]);
      assert.deepEqual(Object.keys(pods[0] ?? {}).sort(), [
        'containers',
        'cpu',
        'memory',
        'podRef',
        'startTime',
        'swap',
      ]);
    });

    it('adds containers up where pods have no cgroup of their own, and hides pods that have not started', async () => {
      machine = new PlantedMachine(version);
      machine.pods = machine.pods.map((pod, index) => ({
        ...pod,
        cgroup: undefined,
        startedAt: index === 0 ? pod.startedAt : undefined,
      }));
      const sampling = machine.sampler.sample('core', 1000);
      await machine.clock.advance(200);
      const { pods } = fullSummary('node', await sampling, plantedDisks(), () => []);
      assert.equal(pods.length, 1);
      assert.equal(pods[0]?.cpu?.usageCoreNanoSeconds, 39_000_000_000);
      assert.equal(pods[0]?.memory?.workingSetBytes, 190 * MiB);
    });
  });
}
