import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { PodStats, Summary } from '../../src/stats/summary-types.ts';
import { Agent, shellPod } from './agent.ts';

const MiB = 1024 * 1024;

/** Holds 50 MiB of memory, has 3 MiB in its own layer, serves 1 MiB, and burns a processor. */
const busy = [
  'dd if=/dev/zero of=/dev/shm/held bs=1M count=50 2>/dev/null',
  'dd if=/dev/zero of=/written bs=1M count=3 2>/dev/null',
  'mkdir /www',
  'dd if=/dev/zero of=/www/file bs=1M count=1 2>/dev/null',
  'httpd -p 8080 -h /www',
  'echo measured',
  'trap exit TERM',
  'while :; do :; done',
].join('; ');

describe('statistics of the node', () => {
  const agent = new Agent();
  before(async () => {
    await agent.start();
    agent.write('busy', shellPod('busy', busy));
    agent.write('host', shellPod('host', 'trap exit TERM; sleep 10000 & wait', { hostNetwork: true }));
    await Promise.all([agent.ready('busy'), agent.ready('host')]);
  });
  after(() => agent.dispose());

  async function summary(query = ''): Promise<Summary> {
    return (await (await agent.get(`/stats/summary${query}`)).json()) as Summary;
  }

  /** The pod's part once it is as `is` says. */
  async function statsOf(name: string, what: string, is: (stats: PodStats) => boolean): Promise<PodStats> {
    let last: PodStats | undefined;
    await agent.eventually(
      `${name}: ${what}`,
      async () => {
        last = (await summary()).pods.find(({ podRef }) => podRef.name === `${name}-node`);
        return last !== undefined && is(last);
      },
      () => JSON.stringify(last),
    );
    return last!;
  }

  it('shows the processor time and the memory a pod uses', async () => {
    const pod = await statsOf('busy', 'burns', ({ cpu }) => (cpu?.usageNanoCores ?? 0) > 50_000_000);
    const [container] = pod.containers;
    assert.equal(container?.name, 'main');
    assert.ok(container.cpu!.usageCoreNanoSeconds! > 50_000_000);
    assert.ok(container.cpu!.usageCoreNanoSeconds! <= pod.cpu!.usageCoreNanoSeconds!);
    for (const { workingSetBytes = 0 } of [pod.memory!, container.memory!]) {
      assert.ok(workingSetBytes > 50 * MiB && workingSetBytes < 120 * MiB, `${workingSetBytes}`);
    }
    assert.ok(pod.process_stats!.process_count! >= 2);
    const idle = await statsOf('host', 'measured', ({ cpu }) => cpu !== undefined);
    assert.ok((idle.cpu!.usageNanoCores ?? 0) < pod.cpu!.usageNanoCores!);
  });

  it("counts what goes through a pod's network", async () => {
    const { status } = await agent.ready('busy');
    const before = (await statsOf('busy', 'network', ({ network }) => network !== undefined)).network!;
    const body = await (await fetch(`http://${status?.podIP}:8080/file`)).arrayBuffer();
    assert.equal(body.byteLength, MiB);
    const { network } = await statsOf(
      'busy',
      'sent',
      (now) => now.network!.txBytes! - before.txBytes! >= MiB,
    );
    assert.equal(network?.name, 'eth0');
    assert.ok(network.txBytes! - before.txBytes! < 2 * MiB);
    assert.ok(network.rxBytes! > before.rxBytes!);
    const onHost = await statsOf('host', 'measured', ({ cpu }) => cpu !== undefined);
    assert.equal(onHost.network, undefined);
  });

  it('counts what lies on disks', async () => {
    const pod = await statsOf(
      'busy',
      'written',
      ({ containers }) => (containers[0]?.rootfs?.usedBytes ?? 0) >= 4 * MiB,
    );
    const { rootfs, logs } = pod.containers[0]!;
    assert.ok(rootfs!.usedBytes! < 5 * MiB);
    assert.ok(rootfs!.capacityBytes! > rootfs!.availableBytes!);
    assert.ok(logs!.usedBytes! > 0);
    assert.ok(pod['ephemeral-storage']!.usedBytes! >= rootfs!.usedBytes! + logs!.usedBytes!);
  });

  it('tells of the node as a whole', async () => {
    const { node } = await summary();
    assert.equal(node.nodeName, 'node');
    assert.ok(node.cpu!.usageNanoCores! > 0 && node.cpu!.usageCoreNanoSeconds! > 0);
    assert.ok(node.memory!.workingSetBytes! > 50 * MiB && node.memory!.availableBytes! > 0);
    assert.ok(node.fs!.capacityBytes! > 0 && node.runtime!.imageFs!.usedBytes! > 0);
    assert.ok(node.rlimit!.curproc! > 10 && node.rlimit!.maxpid! > node.rlimit!.curproc!);
    const pods = node.systemContainers?.find(({ name }) => name === 'pods');
    assert.ok(pods!.memory!.workingSetBytes! > 50 * MiB);
    const few = await summary('?only_cpu_and_memory=true');
    assert.equal(few.node.fs, undefined);
    assert.ok(few.pods.every(({ cpu, memory, network }) => cpu && memory && !network));
  });

  it('tells metrics-server and dashboards of the same pod', async () => {
    const number = async (path: string, series: RegExp) => {
      const text = await (await agent.get(path)).text();
      const line = text.split('\n').find((each) => series.test(each));
      assert.ok(line, `${path} has ${series}`);
      return Number(line.replace(/^.*\} /, '').split(' ')[0]);
    };
    const labels = '\\{container="main",namespace="default",pod="busy-node"\\}';
    assert.ok(
      (await number('/metrics/resource', new RegExp(`^container_cpu_usage_seconds_total${labels}`))) > 0.05,
    );
    const held = await number(
      '/metrics/resource',
      new RegExp(`^container_memory_working_set_bytes${labels}`),
    );
    assert.ok(held > 50 * MiB);
    const ofContainer = 'container="main".*image="[^"]+".*namespace="default",pod="busy-node"';
    const shown = await number(
      '/metrics/cadvisor',
      new RegExp(`^container_memory_working_set_bytes\\{${ofContainer}`),
    );
    assert.ok(Math.abs(shown - held) < 20 * MiB);
    assert.ok(
      (await number(
        '/metrics/cadvisor',
        /^container_network_transmit_bytes_total\{.*pod="busy-node",interface="eth0"/,
      )) > MiB,
    );
    const metrics = await (await agent.get('/metrics')).text();
    assert.match(metrics, /^kubelet_running_pods 2$/m);
    assert.match(metrics, /^kubelet_started_containers_total\{container_type="container"\} 2$/m);
    assert.match(metrics, /^kubelet_pod_start_duration_seconds_count 2$/m);
  });
});
