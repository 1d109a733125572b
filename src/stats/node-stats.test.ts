import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, it } from 'node:test';
import { type Logger, silentLogger } from '../telemetry/logger.ts';
import type { MachineDescription } from './cadvisor-metrics.ts';
import { PlantedMachine, plantedAt, plantedDisks, web } from './fixtures/planted-machine.ts';
import { agesFor, NodeStats, type NodeStatsOptions } from './node-stats.ts';

const description: MachineDescription = {
  bootId: 'boot',
  machineId: 'machine',
  systemUuid: 'uuid',
  cores: 8,
  physicalCores: 4,
  sockets: 1,
  memoryBytes: 8_192_000_000,
  swapBytes: 1_024_000_000,
  kernelVersion: '6.12.0',
  osVersion: 'Debian "13"',
};

function statsOf({ sampler }: Pick<NodeStatsOptions, 'sampler'>, logger: Logger = silentLogger): NodeStats {
  return new NodeStats({
    nodeName: 'node',
    sampler,
    disks: { sample: async () => plantedDisks() },
    volumes: () => [],
    machine: description,
    ages: agesFor(10_000),
    logger,
  });
}

interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  readonly time: number | undefined;
}

/** Every family of a text, each sample once. Throws on what no scraper would take. */
function parse(text: string): Map<string, { type: string; series: Series[] }> {
  const families = new Map<string, { type: string; series: Series[] }>();
  const seen = new Set<string>();
  for (const line of text.split('\n')) {
    const type = /^# TYPE (\S+) (\S+)$/.exec(line);
    if (type) {
      assert.ok(!families.has(type[1]!), `${type[1]} is declared once`);
      families.set(type[1]!, { type: type[2]!, series: [] });
    }
    if (line === '' || line.startsWith('#')) continue;
    const found = /^([a-z_]+[a-z0-9_]*)(\{.*\})? (\S+)( \d+)?$/.exec(line);
    assert.ok(found, `a scraper takes ${line}`);
    const [, name = '', labels = '', value, time] = found;
    assert.ok(!seen.has(name + labels), `${name}${labels} is there once`);
    seen.add(name + labels);
    const pairs = [...labels.matchAll(/([a-zA-Z_]+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text]) => [
      key!,
      text!,
    ]);
    families.get(name)!.series.push({
      labels: Object.fromEntries(pairs),
      value: Number(value),
      time: time === undefined ? undefined : Number(time),
    });
  }
  return families;
}

for (const version of [1, 2] as const) {
  describe(`metrics of a machine with cgroup v${version}`, () => {
    let machine: PlantedMachine;
    afterEach(() => machine.remove());

    async function text(read: (stats: NodeStats) => Promise<string>): Promise<string> {
      machine = new PlantedMachine(version);
      const stats = statsOf(machine);
      const asked = read(stats);
      await machine.clock.advance(200);
      return await asked;
    }

    const cadvisor = () => text((stats) => stats.cadvisorMetrics(async (bytes) => bytes.toString()));
    const resource = () => text((stats) => stats.resourceMetrics(async (bytes) => bytes.toString()));

    it('gives containers, pods and the system their labels', async () => {
      const families = parse(await cadvisor());
      const { series } = families.get('container_memory_working_set_bytes')!;
      const cgroup = machine.podCgroup('burstable', web.uid);
      const container = series.find(({ labels }) => labels['container'] === 'main')!;
      assert.deepEqual(container.labels, {
        container: 'main',
        id: version === 1 ? `${cgroup}/${web.container}` : `${cgroup}/cri-containerd-${web.container}.scope`,
        image: 'example.org/web:1',
        name: web.container,
        namespace: 'shop',
        pod: 'web',
      });
      assert.equal(container.value, 190 * 1024 * 1024);
      assert.equal(container.time, plantedAt + 200);
      const pod = series.find(({ labels }) => labels['id'] === cgroup)!;
      assert.deepEqual(pod.labels, {
        container: '',
        id: cgroup,
        image: '',
        name: '',
        namespace: 'shop',
        pod: 'web',
      });
      for (const id of ['/', '/system.slice/kubelet.service', '/system.slice/containerd.service']) {
        const system = series.find(({ labels }) => labels['id'] === id)!;
        assert.deepEqual(
          { ...system.labels, id: '' },
          { container: '', id: '', image: '', name: '', namespace: '', pod: '' },
        );
      }
    });

    it('counts a network where its namespace is held, and never twice', async () => {
      const { series } = parse(await cadvisor()).get('container_network_receive_bytes_total')!;
      const ofPods = series.filter(({ labels }) => labels['pod'] !== '');
      assert.deepEqual(
        ofPods.map(({ labels, value }) => [labels['name'], labels['interface'], value]),
        [[web.sandbox, 'eth0', 123_456]],
      );
      assert.deepEqual(
        series.filter(({ labels }) => labels['id'] === '/').map(({ labels }) => labels['interface']),
        ['ens3', 'cni0'],
      );
    });

    it('turns the units of files into those of the metrics', async () => {
      const families = parse(await cadvisor());
      const value = (name: string, more: Record<string, string> = {}) =>
        families
          .get(name)!
          .series.find(
            ({ labels }) =>
              labels['container'] === 'main' &&
              Object.entries(more).every(([key, wanted]) => labels[key] === wanted),
          )?.value;
      assert.equal(value('container_cpu_usage_seconds_total', { cpu: 'total' }), 39);
      assert.equal(value('container_cpu_system_seconds_total'), 9.75);
      assert.equal(value('container_cpu_cfs_throttled_seconds_total'), 2.5);
      assert.equal(value('container_cpu_cfs_throttled_periods_total'), 40);
      assert.equal(value('container_spec_cpu_quota'), 50_000);
      assert.equal(value('container_spec_cpu_shares'), version === 1 ? 512 : 500);
      assert.equal(value('container_spec_memory_limit_bytes'), 256 * 1024 * 1024);
      assert.equal(value('container_spec_memory_swap_limit_bytes'), 64 * 1024 * 1024);
      assert.equal(value('container_memory_failcnt'), 3);
      assert.equal(value('container_oom_events_total'), 1);
      assert.equal(value('container_processes'), 2);
      assert.equal(value('container_threads'), 6);
      assert.equal(value('container_threads_max'), 0);
      assert.equal(value('container_ulimits_soft', { ulimit: 'max_open_files' }), 1024);
      assert.equal(value('container_start_time_seconds'), (plantedAt - 60_000) / 1000);
      assert.equal(value('container_fs_usage_bytes', { device: '/dev/sda1' }), 12_288);
      assert.equal(value('container_fs_reads_bytes_total', { device: '/dev/sda' }), 39_000_000);
      assert.equal(value('container_fs_writes_total', { device: '/dev/sda' }), 35);
      const moved = { device: '/dev/sda', major: '8', minor: '0', operation: 'Write' };
      assert.equal(value('container_blkio_device_usage_total', moved), 19_500_000);
      const stalled = value('container_pressure_cpu_stalled_seconds_total');
      assert.equal(stalled, version === 2 ? 1.95 : undefined);
      const quotaFree = families.get('container_cpu_cfs_periods_total')!.series;
      assert.ok(
        quotaFree.every(({ labels }) => labels['container'] !== 'work'),
        'only what has a limit is counted',
      );
    });

    it('has no family and no label that cAdvisor does not have', async () => {
      const table = JSON.parse(
        readFileSync(join(import.meta.dirname, 'fixtures/cadvisor-families.json'), 'utf8'),
      ) as { name: string; type: string; labels: string[] }[];
      const known = new Map(table.map((row) => [row.name, row]));
      for (const [name, { type, series }] of parse(await cadvisor())) {
        assert.equal(known.get(name)?.type, type, name);
        for (const { labels } of series)
          assert.deepEqual(Object.keys(labels).sort(), known.get(name)?.labels, name);
      }
    });

    it('tells metrics-server what it asks for, each with the time it was measured', async () => {
      const families = parse(await resource());
      const only = (name: string) => families.get(name)!.series;
      assert.deepEqual(only('node_cpu_usage_seconds_total'), [
        { labels: {}, value: 500, time: plantedAt + 200 },
      ]);
      assert.deepEqual(only('pod_memory_working_set_bytes')[0], {
        labels: { namespace: 'shop', pod: 'web' },
        value: 200 * 1024 * 1024,
        time: plantedAt + 200,
      });
      assert.deepEqual(only('container_cpu_usage_seconds_total')[0], {
        labels: { container: 'main', namespace: 'shop', pod: 'web' },
        value: 39,
        time: plantedAt + 200,
      });
      assert.deepEqual(only('container_start_time_seconds')[0], {
        labels: { container: 'main', namespace: 'shop', pod: 'web' },
        value: (plantedAt - 60_000) / 1000,
        time: undefined,
      });
      assert.equal(only('container_swap_limit_bytes')[0]?.value, 64 * 1024 * 1024);
      assert.equal(only('resource_scrape_error')[0]?.value, 0);
      assert.equal(only('scrape_error')[0]?.value, 0);
    });
  });
}

describe('/metrics/resource', () => {
  it('holds all that metrics-server makes a node and its pods of, and nothing it would stumble over', async () => {
    const machine = new PlantedMachine(2);
    try {
      const stats = statsOf(machine);
      const read = stats.resourceMetrics(async (bytes) => bytes.toString());
      await machine.clock.advance(200);
      const families = parse(await read);
      // It takes a node whose figures are both there, above zero, and dated.
      for (const name of ['node_cpu_usage_seconds_total', 'node_memory_working_set_bytes']) {
        const [series, ...more] = families.get(name)!.series;
        assert.deepEqual([series?.labels, more], [{}, []]);
        assert.ok(series!.value > 0 && Number.isInteger(series!.time), name);
      }
      const told = (name: string) =>
        new Map(
          families
            .get(name)!
            .series.map(({ labels, ...rest }) => [
              `${labels['namespace']}/${labels['pod']}/${labels['container']}`,
              rest,
            ]),
        );
      const cpu = told('container_cpu_usage_seconds_total');
      const memory = told('container_memory_working_set_bytes');
      const start = told('container_start_time_seconds');
      // One container without a figure, or with a zero, costs it the whole pod.
      const expected = machine.pods.flatMap(({ namespace, name, containers }) =>
        containers.map((container) => `${namespace}/${name}/${container.name}`),
      );
      for (const series of [cpu, memory, start]) {
        assert.deepEqual([...series.keys()].sort(), expected.sort());
        for (const { value } of series.values()) assert.ok(value > 0);
      }
      for (const [key, { time }] of [...cpu, ...memory]) {
        // Milliseconds of now, not seconds.
        assert.equal(time, plantedAt + 200, key);
        // Usage is told of after the start, or it takes the container for restarted.
        assert.ok(start.get(key)!.value * 1000 < time);
      }
    } finally {
      machine.remove();
    }
  });
});

describe('metrics that cannot be measured', () => {
  const errors: unknown[] = [];
  const broken = statsOf(
    { sampler: { sample: () => Promise.reject(new Error('no /proc')) } },
    { ...silentLogger, error: (_, error) => void errors.push(error) },
  );

  it('say so in the scrape, and why in the log, once', async () => {
    for (let scrape = 0; scrape < 2; scrape++) {
      const families = parse(await broken.resourceMetrics(async (bytes) => bytes.toString()));
      assert.equal(families.get('resource_scrape_error')?.series[0]?.value, 1);
      assert.equal(families.get('scrape_error')?.series[0]?.value, 1);
    }
    assert.deepEqual(errors.map(String), ['Error: no /proc']);
  });

  it('fail the scrape of containers', async () => {
    await assert.rejects(
      broken.cadvisorMetrics(async () => {}),
      /no \/proc/,
    );
  });
});

describe('the texts of two scrapers at once', () => {
  it('do not share memory', async () => {
    const machine = new PlantedMachine(2);
    try {
      const stats = statsOf(machine);
      const slow = Promise.withResolvers<void>();
      let kept: Buffer | undefined;
      const first = stats.cadvisorMetrics(async (bytes) => {
        kept = bytes;
        const before = bytes.toString();
        await slow.promise;
        assert.equal(bytes.toString(), before);
      });
      await machine.clock.advance(200);
      const second = await stats.resourceMetrics(async (bytes) => bytes.toString());
      assert.ok(second.startsWith('# HELP container_cpu_usage_seconds_total [STABLE]'));
      assert.ok(kept);
      slow.resolve();
      await first;
    } finally {
      machine.remove();
    }
  });
});
