/**
 * What statistics of 100 pods cost, in time and processor time of the process, on a tree of cgroups laid out
 * in plain files: on a kernel the reads cost about the same, and no runtime is in the way.
 *
 *     node bench/stats-cost.ts [--pods 100] [--rounds 20]
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../src/concurrency/clock.ts';
import { CgroupUsageReader } from '../src/linux/cgroup-usage/cgroup-usage-reader.ts';
import type { MeasuredPod } from '../src/stats/measured-pod.ts';
import { NodeSampler } from '../src/stats/node-sampler.ts';
import { NodeStats } from '../src/stats/node-stats.ts';
import { silentLogger } from '../src/telemetry/logger.ts';
import { median } from './measure.ts';

const { values } = parseArgs({
  options: { pods: { type: 'string', default: '100' }, rounds: { type: 'string', default: '20' } },
});
const podCount = Number(values.pods);
const rounds = Number(values.rounds);

/** The files of one cgroup v2, of the length that a kernel writes. */
const files: Readonly<Record<string, string>> = {
  'cpu.stat':
    'usage_usec 5000000\nuser_usec 3000000\nsystem_usec 2000000\nnr_periods 10\nnr_throttled 1\nthrottled_usec 5\nnr_bursts 0\nburst_usec 0\n',
  'memory.stat': [
    'anon 1000000\nfile 2000000\nkernel 300000\nfile_mapped 4096\ninactive_file 100000\nactive_file 200000',
    ...Array.from({ length: 40 }, (_, index) => `some_other_figure_${index} ${index * 4096}`),
    'pgfault 1000\npgmajfault 10\n',
  ].join('\n'),
  'memory.current': '5000000\n',
  'memory.max': '268435456\n',
  'memory.low': '0\n',
  'memory.peak': '6000000\n',
  'memory.swap.current': '0\n',
  'memory.swap.max': 'max\n',
  'memory.events': 'low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n',
  'pids.current': '3\n',
  'pids.max': 'max\n',
  'cpu.weight': '20\n',
  'cpu.max': '50000 100000\n',
  'io.stat': '8:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n',
  'cgroup.procs': '1\n',
  ...Object.fromEntries(
    ['cpu', 'memory', 'io'].map((kind) => [
      `${kind}.pressure`,
      'some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=500\n',
    ]),
  ),
};

function plant(tree: string, cgroup: string): void {
  mkdirSync(join(tree, cgroup), { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(tree, cgroup, name), text);
}

function plantPod(tree: string, index: number): MeasuredPod {
  const hex = (kind: string) => `${kind}${String(index).padStart(4, '0')}`.padEnd(64, '0');
  const cgroup = `/kubepods.slice/kubepods-burstable.slice/pod${index}.slice`;
  const [sandbox, container] = [hex('a'), hex('c')];
  for (const path of [
    cgroup,
    `${cgroup}/cri-containerd-${sandbox}.scope`,
    `${cgroup}/cri-containerd-${container}.scope`,
  ]) {
    plant(tree, path);
  }
  const startedAt = Date.now();
  return {
    uid: `uid-${index}`,
    name: `pod-${index}`,
    namespace: 'default',
    startedAt,
    cgroup,
    parentCgroup: cgroup,
    sandbox: { id: sandbox, createdAt: startedAt, hostNetwork: false },
    containers: [
      { id: container, name: 'main', image: 'registry.example.org/team/application:1.2.3', startedAt },
    ],
  };
}

// The clock's timers keep no process alive.
const alive = setInterval(() => {}, 60_000);
const directory = mkdtempSync(join(tmpdir(), 'kubelet-ts-stats-cost-'));
try {
  plant(directory, '/');
  const pods = Array.from({ length: podCount }, (_, index) => plantPod(directory, index));
  const stats = new NodeStats({
    nodeName: 'node',
    sampler: new NodeSampler({
      reader: new CgroupUsageReader({ mode: 'v2', unified: directory, trees: new Map() }, systemClock),
      pods: () => pods,
      systemGroups: () => new Map(),
      clock: systemClock,
    }),
    disks: {
      sample: async () => ({
        at: Date.now(),
        node: undefined,
        images: undefined,
        containers: undefined,
        layers: new Map(),
        logs: new Map(),
      }),
    },
    volumes: () => [],
    machine: {
      bootId: '',
      machineId: '',
      systemUuid: '',
      cores: 2,
      physicalCores: 2,
      sockets: 1,
      memoryBytes: 1,
      swapBytes: 0,
      kernelVersion: '',
      osVersion: '',
    },
    // Every round measures anew.
    ages: { usageMs: -1, disksMs: -1 },
    logger: silentLogger,
  });
  const asked: Readonly<Record<string, () => Promise<number>>> = {
    '/stats/summary': async () => JSON.stringify(await stats.summary(false)).length,
    '/stats/summary?only_cpu_and_memory=true': async () => JSON.stringify(await stats.summary(true)).length,
    '/metrics/resource': () => stats.resourceMetrics(async (text) => text.length),
    '/metrics/cadvisor': () => stats.cadvisorMetrics(async (text) => text.length),
  };
  process.stdout.write(`${podCount} pods, one container each, median of ${rounds} rounds\n\n`);
  process.stdout.write('| asked | time | processor time | size |\n|---|---|---|---|\n');
  for (const [path, ask] of Object.entries(asked)) {
    let size = await ask();
    const times: number[] = [];
    const cpus: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const [began, cpu] = [performance.now(), process.cpuUsage()];
      size = await ask();
      const { user, system } = process.cpuUsage(cpu);
      times.push(performance.now() - began);
      cpus.push((user + system) / 1000);
    }
    const ms = (all: readonly number[]) => `${median(all).toFixed(1)} ms`;
    process.stdout.write(`| \`${path}\` | ${ms(times)} | ${ms(cpus)} | ${Math.round(size / 1024)} KiB |\n`);
  }
} finally {
  clearInterval(alive);
  rmSync(directory, { recursive: true, force: true });
}
