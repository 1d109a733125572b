/**
 * What Prometheus users expect of any process: `process_*`, read from procfs when it is scraped.
 */
import { readdir, readFile } from 'node:fs/promises';
import type { MetricsRegistry } from './metrics-registry.ts';

/** Ticks per second in procfs; fixed to 100 for user space on every Linux architecture Node.js runs on. */
const clockTicks = 100;

/** What Prometheus clients report for "no limit": the largest 64-bit number. */
const unlimited = 2 ** 64;

/** Declares the metrics of this process on `metrics`. */
export function declareProcessMetrics(metrics: MetricsRegistry): void {
  const one = (value: number) => [{ value }];
  metrics.observedCounter(
    { name: 'process_cpu_seconds_total', help: 'Total user and system CPU time spent in seconds.' },
    () => {
      const { user, system } = process.cpuUsage();
      return one((user + system) / 1e6);
    },
  );
  metrics.observedGauge({ name: 'process_open_fds', help: 'Number of open file descriptors.' }, async () =>
    // The descriptor that lists the folder is one of them.
    one((await readdir('/proc/self/fd')).length - 1),
  );
  metrics.observedGauge(
    { name: 'process_max_fds', help: 'Maximum number of open file descriptors.' },
    async () => one(await softLimit('Max open files')),
  );
  metrics.observedGauge(
    { name: 'process_resident_memory_bytes', help: 'Resident memory size in bytes.' },
    () => one(process.memoryUsage.rss()),
  );
  metrics.observedGauge(
    { name: 'process_virtual_memory_bytes', help: 'Virtual memory size in bytes.' },
    async () => one(Number((await ownStat())[20])),
  );
  metrics.observedGauge(
    {
      name: 'process_virtual_memory_max_bytes',
      help: 'Maximum amount of virtual memory available in bytes.',
    },
    async () => one(await softLimit('Max address space')),
  );
  declareProcessStart(metrics);
}

/** Declares when this process was started, for registries that tell nothing else of it. */
export function declareProcessStart(metrics: MetricsRegistry): void {
  metrics.observedGauge(
    {
      name: 'process_start_time_seconds',
      help: 'Start time of the process since unix epoch in seconds.',
    },
    async () => [{ value: await startTime() }],
  );
}

/** Seconds since the epoch at which the kernel started this process. */
async function startTime(): Promise<number> {
  const boot = /^btime (\d+)$/m.exec(await readFile('/proc/stat', 'utf8'));
  return Number(boot?.[1]) + Number((await ownStat())[19]) / clockTicks;
}

/** Fields of `/proc/self/stat` after the program's name, which may itself hold spaces: state is at 0. */
async function ownStat(): Promise<string[]> {
  const line = await readFile('/proc/self/stat', 'utf8');
  return line.slice(line.lastIndexOf(')') + 2).split(' ');
}

async function softLimit(name: string): Promise<number> {
  const line = (await readFile('/proc/self/limits', 'utf8')).split('\n').find((row) => row.startsWith(name));
  const [soft] = (line ?? '').slice(name.length).trim().split(/\s+/);
  return soft === 'unlimited' ? unlimited : Number(soft);
}
