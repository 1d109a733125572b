/**
 * `/metrics/cadvisor`: what every cgroup of interest used, with the names and labels that dashboards for
 * Kubernetes look for. Pure, apart from the writer it fills.
 *
 * Every sample carries the labels `container`, `id`, `image`, `name`, `namespace` and `pod`. `id` is the
 * cgroup; the others are empty where they do not apply: a pod's own cgroup has no container, a cgroup of the
 * system no pod. What holds a pod's namespaces carries the pod's network figures.
 */
import type { DeviceUsage } from '../linux/cgroup-usage/cgroup-usage.ts';
import type { InterfaceCounters } from '../linux/network-counters.ts';
import {
  type ExpositionWriter,
  escapeLabel,
  labelText,
  timestampEnd,
} from '../telemetry/exposition-writer.ts';
import { cgroupFamilies } from './cadvisor-families.ts';
import type { DiskSample, FileSystem } from './disk-usage.ts';
import type { GroupSample, NodeSample, PodSample } from './node-sample.ts';

/** What the machine is. */
export interface MachineDescription {
  readonly bootId: string;
  readonly machineId: string;
  readonly systemUuid: string;
  readonly cores: number;
  readonly physicalCores: number;
  readonly sockets: number;
  readonly memoryBytes: number;
  readonly swapBytes: number;
  readonly kernelVersion: string;
  readonly osVersion: string;
}

/** A cgroup with its labels ready to be written. */
interface Row {
  readonly sample: GroupSample;
  /** Labels without the closing brace. */
  readonly open: string;
  readonly closed: Buffer;
  readonly end: string;
  readonly network: readonly InterfaceCounters[];
  readonly openFilesLimit: number | undefined;
  /** What it has on a file system; the node's own for the root. */
  readonly disk: { readonly fileSystem: FileSystem; readonly usedBytes: number } | undefined;
}

export interface CadvisorInput {
  readonly sample: NodeSample;
  readonly disks: DiskSample;
  readonly machine: MachineDescription;
}

export function writeCadvisorMetrics(writer: ExpositionWriter, input: CadvisorInput): void {
  const rows = rowsOf(input);
  writeMachine(writer, input.machine);
  for (const { name, type, help, read, extra } of cgroupFamilies) {
    writer.family(name, type, help);
    for (const row of rows) {
      const value = read(row.sample);
      if (value === undefined) continue;
      writer.sample(extra === undefined ? row.closed : `${row.open},${extra}}`, value, row.end);
    }
  }
  writePageFaults(writer, rows);
  writeOpenFiles(writer, rows);
  writeNetwork(writer, rows);
  writeDisks(writer, rows);
  writeDevices(writer, rows, input.sample.blockDevices);
  writer.family('container_scrape_error', 'gauge', '1 when measuring failed.');
  writer.sample('', 0);
}

function rowsOf({ sample, disks }: CadvisorInput): Row[] {
  const { node, system, pods, network } = sample;
  const rows: Row[] = [
    row(
      node,
      {},
      { network, ...(disks.node && { disk: { fileSystem: disks.node, usedBytes: disks.node.usedBytes } }) },
    ),
  ];
  for (const group of system.values()) rows.push(row(group, {}));
  for (const pod of pods) rows.push(...podRows(pod, disks));
  return rows;
}

function podRows({ pod, group, sandbox, containers, network }: PodSample, disks: DiskSample): Row[] {
  const { namespace, name } = pod;
  const rows: Row[] = [];
  if (group) rows.push(row(group, { namespace, pod: name }));
  // Where a runtime has no cgroup for the sandbox, the pod's own carries the network.
  const carrier = sandbox ?? group;
  if (sandbox)
    rows.push(row(sandbox, { name: sandbox.id, namespace, pod: name }, { ...(network && { network }) }));
  else if (carrier && network) rows[0] = row(carrier, { namespace, pod: name }, { network });
  const fileSystem = disks.containers?.fileSystem;
  for (const each of containers) {
    const { container, openFilesLimit } = each;
    const usedBytes = disks.layers.get(container.id)?.usedBytes;
    rows.push(
      row(
        each,
        { container: container.name, image: container.image, name: container.id, namespace, pod: name },
        {
          ...(openFilesLimit !== undefined && { openFilesLimit }),
          ...(fileSystem && usedBytes !== undefined && { disk: { fileSystem, usedBytes } }),
        },
      ),
    );
  }
  return rows;
}

type Who = Partial<Record<'container' | 'image' | 'name' | 'namespace' | 'pod', string>>;

function row(
  sample: GroupSample,
  { container = '', image = '', name = '', namespace = '', pod = '' }: Who,
  more: Partial<Pick<Row, 'network' | 'openFilesLimit' | 'disk'>> = {},
): Row {
  const closed = labelText({ container, id: sample.cgroup, image, name, namespace, pod });
  return {
    sample,
    open: closed.slice(0, -1),
    closed: Buffer.from(closed),
    end: timestampEnd(sample.usage.at),
    network: more.network ?? [],
    openFilesLimit: more.openFilesLimit,
    disk: more.disk,
  };
}

function writeMachine(writer: ExpositionWriter, machine: MachineDescription): void {
  const { bootId, machineId, systemUuid, kernelVersion, osVersion } = machine;
  const labels = labelText({ boot_id: bootId, machine_id: machineId, system_uuid: systemUuid });
  const one = (name: string, help: string, value: number, which = labels) => {
    writer.family(name, 'gauge', help);
    writer.sample(which, value);
  };
  one('machine_cpu_cores', 'Logical processors.', machine.cores);
  one('machine_cpu_physical_cores', 'Processor cores.', machine.physicalCores);
  one('machine_cpu_sockets', 'Processor sockets.', machine.sockets);
  one('machine_memory_bytes', 'Memory of the machine in bytes.', machine.memoryBytes);
  one('machine_swap_bytes', 'Swap of the machine in bytes.', machine.swapBytes);
  one('machine_scrape_error', '1 when looking at the machine failed.', 0, '');
  const version = labelText({
    cadvisorRevision: '',
    cadvisorVersion: '',
    dockerVersion: '',
    kernelVersion,
    osVersion,
  });
  one('cadvisor_version_info', 'Always 1; kernel and operating system of the machine.', 1, version);
}

function writePageFaults(writer: ExpositionWriter, rows: readonly Row[]): void {
  writer.family('container_memory_failures_total', 'counter', 'Page faults.');
  for (const { sample, open, end } of rows) {
    const memory = sample.usage.memory;
    if (memory === undefined) continue;
    const write = (type: string, scope: string, value: number) =>
      writer.sample(`${open},failure_type="${type}",scope="${scope}"}`, value, end);
    write('pgfault', 'container', memory.ownPageFaults);
    write('pgfault', 'hierarchy', memory.pageFaults);
    write('pgmajfault', 'container', memory.ownMajorPageFaults);
    write('pgmajfault', 'hierarchy', memory.majorPageFaults);
  }
}

function writeOpenFiles(writer: ExpositionWriter, rows: readonly Row[]): void {
  writer.family('container_ulimits_soft', 'gauge', 'Soft limits of the first process; -1 without one.');
  for (const { open, end, openFilesLimit } of rows) {
    if (openFilesLimit !== undefined) writer.sample(`${open},ulimit="max_open_files"}`, openFilesLimit, end);
  }
}

const networkFamilies: readonly (readonly [string, string, (counters: InterfaceCounters) => number])[] = [
  ['receive_bytes', 'Bytes received.', ({ rxBytes }) => rxBytes],
  ['receive_errors', 'Errors while receiving.', ({ rxErrors }) => rxErrors],
  ['receive_packets', 'Packets received.', ({ rxPackets }) => rxPackets],
  ['receive_packets_dropped', 'Packets dropped while receiving.', ({ rxDropped }) => rxDropped],
  ['transmit_bytes', 'Bytes sent.', ({ txBytes }) => txBytes],
  ['transmit_errors', 'Errors while sending.', ({ txErrors }) => txErrors],
  ['transmit_packets', 'Packets sent.', ({ txPackets }) => txPackets],
  ['transmit_packets_dropped', 'Packets dropped while sending.', ({ txDropped }) => txDropped],
];

function writeNetwork(writer: ExpositionWriter, rows: readonly Row[]): void {
  for (const [name, help, read] of networkFamilies) {
    writer.family(`container_network_${name}_total`, 'counter', help);
    for (const { open, end, network } of rows) {
      for (const counters of network) {
        writer.sample(`${open},interface="${escapeLabel(counters.name)}"}`, read(counters), end);
      }
    }
  }
}

const diskFamilies: readonly (readonly [string, string, (disk: NonNullable<Row['disk']>) => number])[] = [
  ['usage_bytes', 'Bytes in use on the file system.', ({ usedBytes }) => usedBytes],
  ['limit_bytes', 'Size of the file system in bytes.', ({ fileSystem }) => fileSystem.capacityBytes],
  ['inodes_free', 'Inodes that are free.', ({ fileSystem }) => fileSystem.inodesFree],
  ['inodes_total', 'Inodes of the file system.', ({ fileSystem }) => fileSystem.inodes],
];

function writeDisks(writer: ExpositionWriter, rows: readonly Row[]): void {
  for (const [name, help, read] of diskFamilies) {
    writer.family(`container_fs_${name}`, 'gauge', help);
    for (const { open, end, disk } of rows) {
      if (disk) writer.sample(`${open},device="${escapeLabel(disk.fileSystem.device)}"}`, read(disk), end);
    }
  }
}

const deviceFamilies: readonly (readonly [string, string, (device: DeviceUsage) => number])[] = [
  ['container_fs_reads_bytes_total', 'Bytes read.', ({ readBytes }) => readBytes],
  ['container_fs_reads_total', 'Reads done.', ({ reads }) => reads],
  ['container_fs_writes_bytes_total', 'Bytes written.', ({ writeBytes }) => writeBytes],
  ['container_fs_writes_total', 'Writes done.', ({ writes }) => writes],
];

function writeDevices(
  writer: ExpositionWriter,
  rows: readonly Row[],
  names: ReadonlyMap<string, string>,
): void {
  const nameOf = ({ major, minor }: DeviceUsage) => names.get(`${major}:${minor}`) ?? '';
  for (const [name, help, read] of deviceFamilies) {
    writer.family(name, 'counter', help);
    for (const { open, end, sample } of rows) {
      for (const device of sample.usage.devices) {
        writer.sample(`${open},device="${escapeLabel(nameOf(device))}"}`, read(device), end);
      }
    }
  }
  writer.family('container_blkio_device_usage_total', 'counter', 'Bytes moved by each block device.');
  for (const { open, end, sample } of rows) {
    for (const device of sample.usage.devices) {
      const labels = `${open},device="${escapeLabel(nameOf(device))}",major="${device.major}",minor="${device.minor}"`;
      writer.sample(`${labels},operation="Read"}`, device.readBytes, end);
      writer.sample(`${labels},operation="Write"}`, device.writeBytes, end);
    }
  }
}
