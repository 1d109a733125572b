/**
 * Measures the node, its system cgroups and its pods, when somebody asks and only then.
 *
 * Guarantees: an answer is never older than the age that was asked for; those who ask at the same time share
 * one pass. A pass reads each cgroup once, in slices of a few milliseconds, so that nothing else in the
 * process waits for it. No process is started and nothing is kept but one reading of processor time for each
 * cgroup.
 */
import { readdirSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Clock, sleep } from '../concurrency/clock.ts';
import { SingleFlight } from '../concurrency/single-flight.ts';
import { parseBlockDevices } from '../linux/block-devices.ts';
import type { CgroupUsage, MemoryUsage, UsageDetail } from '../linux/cgroup-usage/cgroup-usage.ts';
import type { CgroupUsageReader } from '../linux/cgroup-usage/cgroup-usage-reader.ts';
import {
  defaultRouteInterface,
  type InterfaceCounters,
  parseNetworkCounters,
} from '../linux/network-counters.ts';
import { parsePressure } from '../linux/pressure.ts';
import { type MemoryInfo, parseBootTime, parseMemoryInfo } from '../linux/procfs.ts';
import type { MeasuredPod } from './measured-pod.ts';
import type { ContainerSample, GroupSample, NodeSample, PodSample, SystemGroup } from './node-sample.ts';
import { shortestWindowMs, UsageRates } from './usage-rates.ts';

export interface NodeSamplerOptions {
  readonly reader: CgroupUsageReader;
  /** Asked at each pass. */
  readonly pods: () => Iterable<MeasuredPod>;
  /** Cgroups of the system, asked at each pass; those that are missing are left out. */
  readonly systemGroups: () => ReadonlyMap<SystemGroup, string>;
  readonly clock: Clock;
  /** Where procfs is; another place in tests. */
  readonly proc?: string;
}

/** Work done before the event loop gets a turn, milliseconds. */
const sliceMs = 4;
/** The very first answer compares processor time with a reading this much earlier. */
const firstWindowMs = 2 * shortestWindowMs;

export class NodeSampler {
  readonly #options: NodeSamplerOptions;
  readonly #proc: string;
  readonly #rates = new UsageRates();
  readonly #flights = new SingleFlight<NodeSample>();
  readonly #createdAt = new Map<string, number | undefined>();
  #last: NodeSample | undefined;
  #bootedAt: number | undefined;
  #sliceEnd = 0;

  constructor(options: NodeSamplerOptions) {
    this.#options = options;
    this.#proc = options.proc ?? '/proc';
  }

  /** A sample with at least this detail that is at most `maxAgeMs` old. */
  async sample(detail: UsageDetail, maxAgeMs: number): Promise<NodeSample> {
    const { clock } = this.#options;
    const tellsEnough = (sample: NodeSample) => detail === 'core' || sample.detail === 'all';
    const last = this.#last;
    const age = last === undefined ? Number.POSITIVE_INFINITY : clock.now() - last.at;
    // A clock that was set back must not keep an old sample alive.
    if (last !== undefined && age >= 0 && age <= maxAgeMs && tellsEnough(last)) return last;
    for (;;) {
      // One pass at a time: what is under way may tell less than is wanted here.
      const sample = await this.#flights.run('pass', () => this.#measure(detail));
      if (tellsEnough(sample)) return sample;
    }
  }

  async #measure(detail: UsageDetail): Promise<NodeSample> {
    const { clock } = this.#options;
    if (!this.#rates.knows('/', clock.now())) {
      this.#last = await this.#pass('core');
      await sleep(clock, firstWindowMs);
    }
    this.#last = await this.#pass(detail);
    return this.#last;
  }

  async #pass(detail: UsageDetail): Promise<NodeSample> {
    const { clock, reader, systemGroups } = this.#options;
    const at = clock.now();
    this.#sliceEnd = performance.now() + sliceMs;
    const memory = parseMemoryInfo(reader.readFile(`${this.#proc}/meminfo`) ?? '');
    this.#bootedAt ??= parseBootTime(reader.readFile(`${this.#proc}/stat`) ?? '');
    const node = this.#node(memory, detail, at);
    const system = new Map<SystemGroup, GroupSample>();
    for (const [name, cgroup] of systemGroups()) {
      const group = this.#group(cgroup, detail);
      if (group) system.set(name, group);
    }
    const pods: PodSample[] = [];
    const siblings = new Map<string, readonly string[]>();
    for (const pod of this.#options.pods()) {
      pods.push(this.#pod(pod, detail, siblings));
      if (performance.now() < this.#sliceEnd) continue;
      await nextTurn();
      this.#sliceEnd = performance.now() + sliceMs;
    }
    this.#forget(node, system, pods);
    return {
      detail,
      at,
      node,
      system,
      pods,
      network: this.#network('1'),
      defaultInterface: defaultRouteInterface(reader.readFile(`${this.#proc}/net/route`) ?? ''),
      swap: { total: memory.swapTotal, free: memory.swapFree },
      blockDevices:
        detail === 'all' ? parseBlockDevices(reader.readFile(`${this.#proc}/partitions`) ?? '') : new Map(),
      tasks: this.#tasks(),
    };
  }

  /** The root cgroup, completed with what only the machine as a whole is asked for. */
  #node(machine: MemoryInfo, detail: UsageDetail, at: number): GroupSample {
    const { reader } = this.#options;
    const read: CgroupUsage = reader.read('/', detail) ?? { at, devices: [], limits: {} };
    const pressureOf = (kind: string) => parsePressure(reader.readFile(`${this.#proc}/pressure/${kind}`));
    const [cpu, memory, io] = ['cpu', 'memory', 'io'].map(pressureOf);
    const usage: CgroupUsage = {
      ...read,
      ...(read.memory && { memory: nodeMemory(read.memory, machine, reader.version) }),
      ...((cpu ?? memory ?? io) && {
        pressure: { ...(cpu && { cpu }), ...(memory && { memory }), ...(io && { io }) },
      }),
      limits: { ...read.limits, memory: machine.total, swap: machine.swapTotal },
    };
    return { cgroup: '/', usage, nanoCores: this.#rate('/', usage), createdAt: this.#bootedAt };
  }

  #pod(pod: MeasuredPod, detail: UsageDetail, siblings: Map<string, readonly string[]>): PodSample {
    const { parentCgroup, sandbox } = pod;
    let names = siblings.get(parentCgroup);
    if (names === undefined) siblings.set(parentCgroup, (names = this.#children(parentCgroup)));
    const cgroupOf = (id: string) => {
      const name = names.find((each) => each === id || each.includes(id));
      return name === undefined ? undefined : `${parentCgroup === '/' ? '' : parentCgroup}/${name}`;
    };
    const containers: ContainerSample[] = [];
    for (const container of pod.containers) {
      const cgroup = cgroupOf(container.id);
      const group = cgroup === undefined ? undefined : this.#group(cgroup, detail, container.startedAt);
      if (!group) continue;
      const openFilesLimit = this.#openFilesLimit(group);
      containers.push({ ...group, container, ...(openFilesLimit !== undefined && { openFilesLimit }) });
    }
    const sandboxCgroup = sandbox && cgroupOf(sandbox.id);
    const sandboxGroup =
      sandboxCgroup === undefined ? undefined : this.#group(sandboxCgroup, detail, sandbox?.createdAt);
    return {
      pod,
      group: pod.cgroup === undefined ? undefined : this.#group(pod.cgroup, detail),
      sandbox: sandbox && sandboxGroup && { ...sandboxGroup, id: sandbox.id },
      containers,
      network: sandbox && !sandbox.hostNetwork ? this.#podNetwork([sandboxGroup, ...containers]) : undefined,
    };
  }

  /** Every process of a pod is in the pod's network namespace; one of them has to be found. */
  #podNetwork(groups: readonly (GroupSample | undefined)[]): InterfaceCounters[] | undefined {
    for (const group of groups) {
      const pid = group && this.#options.reader.firstProcess(group.cgroup);
      if (pid !== undefined) return this.#network(String(pid));
    }
    return undefined;
  }

  #openFilesLimit({ usage: { processes } }: GroupSample): number | undefined {
    if (processes?.first === undefined) return undefined;
    const limits = this.#options.reader.readFile(`${this.#proc}/${processes.first}/limits`) ?? '';
    const soft = /^Max open files\s+(\S+)/m.exec(limits)?.[1];
    // As a kubelet tells "no limit".
    return soft === undefined ? undefined : soft === 'unlimited' ? -1 : Number(soft);
  }

  #network(pid: string): InterfaceCounters[] {
    return parseNetworkCounters(this.#options.reader.readFile(`${this.#proc}/${pid}/net/dev`) ?? '');
  }

  #group(cgroup: string, detail: UsageDetail, startedAt?: number): GroupSample | undefined {
    const { reader } = this.#options;
    const usage = reader.read(cgroup, detail);
    if (usage === undefined) return undefined;
    let createdAt = startedAt ?? this.#createdAt.get(cgroup);
    if (createdAt === undefined) {
      createdAt = reader.createdAt(cgroup);
      this.#createdAt.set(cgroup, createdAt);
    }
    return { cgroup, usage, nanoCores: this.#rate(cgroup, usage, createdAt), createdAt };
  }

  /** What came into being since the last pass is measured from its beginning. */
  #rate(cgroup: string, { at, cpu }: CgroupUsage, createdAt?: number): number | undefined {
    if (cpu === undefined) return undefined;
    const isNew = createdAt !== undefined && this.#last !== undefined && createdAt > this.#last.at;
    return this.#rates.take(cgroup, at, cpu.totalNs, isNew ? createdAt : undefined);
  }

  #children(cgroup: string): string[] {
    const directory = this.#options.reader.directory(cgroup);
    if (directory === undefined) return [];
    try {
      return readdirSync(directory, { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => name);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT' || code === 'ENODEV') return [];
      throw error;
    }
  }

  #tasks(): NodeSample['tasks'] {
    const { reader } = this.#options;
    const number = (file: string) => Number.parseInt(reader.readFile(`${this.#proc}/${file}`) ?? '', 10);
    const load = reader.readFile(`${this.#proc}/loadavg`) ?? '';
    return {
      running: Number(/\d+\/(\d+)/.exec(load)?.[1] ?? 0),
      max: Math.min(number('sys/kernel/pid_max'), number('sys/kernel/threads-max')),
    };
  }

  #forget(node: GroupSample, system: ReadonlyMap<string, GroupSample>, pods: readonly PodSample[]): void {
    this.#rates.endPass();
    const seen = new Set([node.cgroup]);
    for (const { cgroup } of system.values()) seen.add(cgroup);
    for (const { group, sandbox, containers } of pods) {
      for (const each of [group, sandbox, ...containers]) if (each) seen.add(each.cgroup);
    }
    for (const cgroup of this.#createdAt.keys()) if (!seen.has(cgroup)) this.#createdAt.delete(cgroup);
  }
}

/** The root cgroup counts no swap and, on v2, no memory as a whole: the machine knows. */
function nodeMemory(read: MemoryUsage, machine: MemoryInfo, version: 1 | 2): MemoryUsage {
  const usage = version === 1 ? read.usage : machine.total - machine.free;
  const workingSet = Math.max(0, usage - read.inactiveFile);
  return { ...read, usage, workingSet, swap: machine.swapTotal - machine.swapFree };
}
