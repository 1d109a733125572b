/**
 * `/metrics/resource`: the few figures that autoscaling and `kubectl top` live on, by way of metrics-server.
 * Samples carry the time they were measured at. Pure, apart from the writer it fills.
 */
import { type ExpositionWriter, labelText, timestampEnd } from '../telemetry/exposition-writer.ts';
import type { ContainerSample, GroupSample, NodeSample, PodSample } from './node-sample.ts';

type Line = readonly [labels: string, value: number | undefined, end: string];

export function writeResourceMetrics(writer: ExpositionWriter, sample: NodeSample): void {
  const { node, pods } = sample;
  const ofNode = (read: Read): Line[] => [['', read(node), timestampEnd(node.usage.at)]];
  const ofPods = (read: Read) => pods.flatMap((pod) => podLine(pod, read));
  const ofContainers = (read: Read) => pods.flatMap((pod) => containerLines(pod, read));
  const write = (name: string, type: 'counter' | 'gauge', help: string, lines: readonly Line[]) => {
    writer.family(name, type, help);
    for (const [labels, value, end] of lines) if (value !== undefined) writer.sample(labels, value, end);
  };

  write(
    'container_cpu_usage_seconds_total',
    'counter',
    '[STABLE] Processor time used by the container, in seconds.',
    ofContainers(cpuSeconds),
  );
  write(
    'container_memory_working_set_bytes',
    'gauge',
    '[STABLE] Working set of the container in bytes.',
    ofContainers(workingSet),
  );
  write(
    'container_start_time_seconds',
    'gauge',
    '[STABLE] When the container started, in seconds since 1970.',
    ofContainers(({ createdAt }) => createdAt && createdAt / 1000).map(([labels, value]) => [
      labels,
      value,
      '\n',
    ]),
  );
  write(
    'container_swap_limit_bytes',
    'gauge',
    '[ALPHA] Swap that the container may use, in bytes.',
    ofContainers(({ usage }) => (usage.memory?.swap === undefined ? undefined : usage.limits.swap)),
  );
  write(
    'container_swap_usage_bytes',
    'gauge',
    '[ALPHA] Swap that the container uses, in bytes.',
    ofContainers(swap),
  );
  write(
    'node_cpu_usage_seconds_total',
    'counter',
    '[STABLE] Processor time used by the node, in seconds.',
    ofNode(cpuSeconds),
  );
  write(
    'node_memory_working_set_bytes',
    'gauge',
    '[STABLE] Working set of the node in bytes.',
    ofNode(workingSet),
  );
  write('node_swap_usage_bytes', 'gauge', '[ALPHA] Swap that the node uses, in bytes.', ofNode(swap));
  write(
    'pod_cpu_usage_seconds_total',
    'counter',
    '[STABLE] Processor time used by the pod, in seconds.',
    ofPods(cpuSeconds),
  );
  write(
    'pod_memory_working_set_bytes',
    'gauge',
    '[STABLE] Working set of the pod in bytes.',
    ofPods(workingSet),
  );
  write('pod_swap_usage_bytes', 'gauge', '[ALPHA] Swap that the pod uses, in bytes.', ofPods(swap));
  write('resource_scrape_error', 'gauge', '[STABLE] 1 when measuring failed, 0 otherwise.', [['', 0, '\n']]);
  write('scrape_error', 'gauge', '[ALPHA] (Deprecated since 1.29.0) 1 when measuring failed, 0 otherwise.', [
    ['', 0, '\n'],
  ]);
}

/** What is told when measuring failed. */
export function writeResourceError(writer: ExpositionWriter): void {
  writer.family('resource_scrape_error', 'gauge', '[STABLE] 1 when measuring failed, 0 otherwise.');
  writer.sample('', 1);
  writer.family(
    'scrape_error',
    'gauge',
    '[ALPHA] (Deprecated since 1.29.0) 1 when measuring failed, 0 otherwise.',
  );
  writer.sample('', 1);
}

type Read = (group: GroupSample) => number | undefined;

const cpuSeconds: Read = ({ usage: { cpu } }) => cpu && cpu.totalNs / 1e9;
const workingSet: Read = ({ usage: { memory } }) => memory?.workingSet;
const swap: Read = ({ usage: { memory } }) => memory?.swap;

function podLine({ pod, group, containers }: PodSample, read: Read): Line[] {
  const labels = labelText({ namespace: pod.namespace, pod: pod.name });
  if (group) return [[labels, read(group), timestampEnd(group.usage.at)]];
  const [first] = containers;
  if (first === undefined) return [];
  // Without a cgroup of its own, a pod is what its containers add up to.
  const values = containers.map(read);
  const isWhole = values.every((value) => value !== undefined);
  const sum = values.reduce<number>((total, value) => total + (value ?? 0), 0);
  return [[labels, isWhole ? sum : undefined, timestampEnd(first.usage.at)]];
}

function containerLines({ pod, containers }: PodSample, read: Read): Line[] {
  return containers.map((each: ContainerSample): Line => {
    const labels = labelText({ container: each.container.name, namespace: pod.namespace, pod: pod.name });
    return [labels, read(each), timestampEnd(each.usage.at)];
  });
}
