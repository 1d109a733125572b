import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sleep } from '../concurrency/clock.ts';
import { failure, leasePathOf, nodePath, unreachable } from './fixtures/fake-api-server.ts';
import { machine, network } from './fixtures/node-world.ts';
import { PresenceWorld } from './fixtures/presence-world.ts';
import type { Node } from './node-types.ts';

/** A node that an earlier run of this agent left, Ready. */
async function knownNode(): Promise<Node> {
  const world = new PresenceWorld();
  world.start();
  await world.clock.advance(100);
  await world.stop();
  return structuredClone(world.node!);
}

function withReady(node: Node, status: string): Node {
  const conditions = node.status?.conditions?.map((condition) =>
    condition.type === 'Ready' ? { ...condition, status, reason: 'NodeStatusUnknown' } : condition,
  );
  return { ...node, status: { ...node.status, ...(conditions && { conditions }) } };
}

describe('a new node', () => {
  test('is looked for and created whole, Ready from its first second, with two requests and its lease', async () => {
    const world = new PresenceWorld();
    world.start();
    await world.clock.advance(100);
    assert.equal(world.ready, 'True');
    assert.deepEqual(world.server.requests(), [
      'GET /api/v1/nodes/worker-1',
      'POST /api/v1/nodes',
      `GET ${leasePathOf('worker-1')}`,
      'POST /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases',
    ]);
    assert.deepEqual(world.events.reasons, [
      'NodeHasSufficientMemory',
      'NodeHasNoDiskPressure',
      'NodeHasSufficientPID',
      'NodeReady',
    ]);
    assert.ok(world.server.seen.every(({ priority }) => priority === 'heartbeat'));
    await world.stop();
  });

  test('waits a moment for the first look at the runtime, not longer', async () => {
    const look = Promise.withResolvers<void>();
    const world = new PresenceWorld({ firstLook: look.promise });
    world.health = { ...world.health, runtime: 'unchecked', isStarting: true };
    world.start();
    await world.clock.advance(150);
    assert.equal(world.node, undefined);
    await world.clock.advance(100);
    assert.equal(world.ready, 'False');
    world.change({ health: { runtime: 'good' } });
    await world.clock.advance(1);
    assert.equal(world.ready, 'True');
    await world.stop();
  });

  test('costs six leases a minute and nothing else while nothing happens', async () => {
    const world = new PresenceWorld();
    world.start();
    await world.clock.advance(5000);
    world.server.seen.length = 0;
    await world.clock.advance(240_000);
    assert.equal(world.server.requests('PUT').length, 24);
    assert.equal(world.server.seen.length, 24);
    await world.clock.advance(60_000);
    assert.equal(world.nodeRequests('PATCH'), 1);
    await world.stop();
  });
});

describe('an API server that is away at the start', () => {
  test('is asked with a back-off up to 7 s, which the client tells of', async () => {
    const world = new PresenceWorld();
    world.server.fault = () => unreachable('connect ECONNREFUSED 10.0.0.1:6443');
    world.start();
    await world.clock.advance(60_000);
    const at = world.server.seen.map((seen) => seen.at);
    const gaps = at.slice(1).map((time, index) => time - at[index]!);
    assert.deepEqual(gaps, [100, 200, 400, 800, 1600, 3200, 6400, ...gaps.slice(7).map(() => 7000)]);
    assert.deepEqual(world.warnings.lines, []);
    world.server.fault = undefined;
    await world.clock.advance(7000);
    assert.equal(world.ready, 'True');
    await world.stop();
  });

  for (const [status, remedy] of [
    [403, /system:node:worker-1.*system:nodes/],
    [422, /--node-labels/],
  ] as const) {
    test(`or refuses with ${status} is told with the remedy`, async () => {
      const world = new PresenceWorld();
      world.server.fault = ({ method }) =>
        method === 'POST' ? failure(status, 'x', 'nodes is refused') : undefined;
      world.start();
      await world.clock.advance(1000);
      assert.equal(world.warnings.lines.length, 1);
      assert.match(world.warnings.lines[0]!, remedy);
      await world.stop();
    });
  }

  test('hangs: the call is given up and made again', async () => {
    const world = new PresenceWorld();
    world.server.fault = () => 'hang';
    world.start();
    await world.clock.advance(9000);
    world.server.fault = undefined;
    await world.clock.advance(2000);
    assert.equal(world.ready, 'True');
    await world.stop();
  });

  test('loses the answer to the creation: what is there is found', async () => {
    const world = new PresenceWorld();
    world.server.fault = ({ method, path }) =>
      method === 'POST' && path === '/api/v1/nodes' ? 'lose-answer' : undefined;
    world.start();
    await world.clock.advance(1000);
    assert.equal(world.ready, 'True');
    assert.equal(world.server.requests('POST').filter((request) => request.endsWith('/nodes')).length, 1);
    assert.notEqual(world.lease, undefined);
    await world.stop();
  });

  test('asks for time: it is given', async () => {
    const world = new PresenceWorld();
    world.server.fault = () => failure(429, 'TooManyRequests', 'slow down', 5000);
    world.start();
    await world.clock.advance(4900);
    assert.equal(world.server.seen.length, 1);
    await world.stop();
  });
});

describe('a node that is registered already', () => {
  test('keeps its conditions while the agent has not looked at the runtime', async () => {
    const world = new PresenceWorld();
    world.server.store(nodePath('worker-1'), (await knownNode()) as never);
    const before = world.condition('Ready');
    world.health = { ...world.health, runtime: 'unchecked', isStarting: true, pressure: undefined };
    world.server.onStored = undefined;
    world.start();
    await world.clock.advance(2000);
    assert.deepEqual(world.condition('Ready'), before);
    assert.deepEqual(world.events.reasons, []);
    world.change({ health: { runtime: 'good', pressure: { memory: false, disk: false, pids: false } } });
    await world.clock.advance(10_000);
    assert.equal(world.ready, 'True');
    assert.equal(world.condition('Ready')?.lastTransitionTime, before?.lastTransitionTime);
    assert.deepEqual(world.events.reasons, []);
    await world.stop();
  });

  test('gets its labels and status in one patch, and keeps taints and foreign labels', async () => {
    const world = new PresenceWorld();
    const known = await knownNode();
    world.server.store(nodePath('worker-1'), {
      ...known,
      metadata: { ...known.metadata, labels: { mine: '1', 'kubernetes.io/hostname': 'old' } },
      spec: { taints: [{ key: 'admin', effect: 'NoSchedule' }] },
    } as never);
    world.start();
    await world.clock.advance(1000);
    assert.equal(world.nodeRequests('PATCH'), 1);
    assert.equal(world.node?.metadata.labels?.['mine'], '1');
    assert.equal(world.node?.metadata.labels?.['kubernetes.io/hostname'], 'worker-1');
    assert.deepEqual(world.node?.spec, { taints: [{ key: 'admin', effect: 'NoSchedule' }] });
    // What an administrator changes later is not changed back.
    world.meddle((node) => ({
      ...node,
      metadata: { ...node.metadata, labels: { ...node.metadata.labels, 'kubernetes.io/hostname': 'admin' } },
    }));
    await world.clock.advance(30_000);
    assert.equal(world.node?.metadata.labels?.['kubernetes.io/hostname'], 'admin');
    await world.stop();
  });

  test('and has been rebooted since says so', async () => {
    const world = new PresenceWorld();
    world.server.store(nodePath('worker-1'), (await knownNode()) as never);
    world.status = { ...world.status, machine: { ...machine, bootId: 'boot-2' } };
    world.start();
    await world.clock.advance(30_000);
    assert.deepEqual(world.events.reasons, ['Rebooted']);
    assert.equal(world.node?.status?.nodeInfo?.bootID, 'boot-2');
    await world.stop();
  });
});

describe('the name of another machine', () => {
  const other = { ...machine, machineId: 'beef', systemUuid: 'other-uuid' };

  test('that lives is not taken, until its lease has expired', async () => {
    const world = new PresenceWorld();
    world.server.store(nodePath('worker-1'), (await knownNode()) as never);
    world.server.store(leasePathOf('worker-1'), {
      metadata: { name: 'worker-1' },
      spec: {
        holderIdentity: 'worker-1',
        leaseDurationSeconds: 40,
        renewTime: new Date(world.clock.now()).toISOString(),
      },
    });
    world.status = { ...world.status, machine: other };
    world.start();
    await world.clock.advance(35_000);
    assert.equal(world.node?.status?.nodeInfo?.machineID, machine.machineId);
    assert.deepEqual(world.server.requests('PUT'), []);
    assert.equal(world.warnings.lines.length, 1);
    assert.match(world.warnings.lines[0]!, /in use by another machine.*f00d.*--hostname-override/);
    await world.clock.advance(15_000);
    assert.equal(world.node?.status?.nodeInfo?.machineID, 'beef');
    await world.stop();
  });

  test('that is gone is taken over at once', async () => {
    const world = new PresenceWorld();
    world.server.store(nodePath('worker-1'), (await knownNode()) as never);
    world.status = { ...world.status, machine: other };
    world.start();
    await world.clock.advance(1000);
    assert.equal(world.node?.status?.nodeInfo?.machineID, 'beef');
    await world.stop();
  });
});

describe('a change', () => {
  test('of readiness is written at once, both ways, with its time and event', async () => {
    const world = new PresenceWorld();
    world.start();
    await world.clock.advance(5000);
    world.events.reasons.length = 0;
    world.change({ health: { networkNotReady: 'container runtime network not ready: x' } });
    await world.clock.advance(1);
    assert.equal(world.ready, 'False');
    world.change({ health: { networkNotReady: undefined } });
    await world.clock.advance(1);
    assert.equal(world.ready, 'True');
    assert.deepEqual(world.events.reasons, ['NodeNotReady', 'NodeReady']);
    await world.stop();
  });

  test('of anything else is written within a second, several in one', async () => {
    const world = new PresenceWorld();
    world.start();
    await world.clock.advance(100);
    for (let size = 1; size <= 5; size++) {
      world.change({ status: { images: [{ names: ['a:1'], sizeBytes: size }] } });
      await world.clock.advance(50);
    }
    await world.clock.advance(1000);
    assert.equal(world.nodeRequests('PATCH'), 1);
    assert.equal(world.node?.status?.images?.[0]?.sizeBytes, 5);
    const { body } = world.server.seen.findLast(({ method }) => method === 'PATCH')!;
    assert.deepEqual(Object.keys((body as { status: object }).status).sort(), ['conditions', 'images']);
    await world.stop();
  });

  test('happened when it happened, however late it can be written, and is announced once', async () => {
    const world = new PresenceWorld();
    world.start();
    await world.clock.advance(5000);
    world.events.reasons.length = 0;
    world.server.fault = ({ method }) => (method === 'PATCH' ? unreachable('down') : undefined);
    const happened = world.clock.now();
    world.change({ health: { shuttingDown: true } });
    await world.clock.advance(30_000);
    assert.equal(world.ready, 'True');
    world.server.fault = undefined;
    await world.clock.advance(10_000);
    assert.equal(world.ready, 'False');
    assert.equal(Date.parse(world.condition('Ready')!.lastTransitionTime!), happened);
    assert.deepEqual(world.events.reasons, ['NodeNotReady']);
    await world.stop();
  });

  test('that the control plane made to Ready is put right at once', async () => {
    const world = new PresenceWorld();
    world.start();
    await world.clock.advance(5000);
    world.meddle((node) => withReady(node, 'Unknown'));
    await world.clock.advance(1);
    assert.equal(world.ready, 'True');
    assert.equal(world.condition('Ready')?.reason, 'KubeletReady');
    await world.stop();
  });

  test('that an older server does not take is not sent again and again', async () => {
    const world = new PresenceWorld();
    world.server.unknownStatusFields = ['declaredFeatures'];
    world.status = { ...world.status, declaredFeatures: ['A'] };
    world.start();
    await world.clock.advance(250_000);
    assert.equal(world.nodeRequests('PATCH'), 0);
    world.change({ status: { swapBytes: 7 } });
    await world.clock.advance(30_000);
    assert.equal(world.nodeRequests('PATCH'), 1);
    assert.equal(world.node?.status?.nodeInfo?.swap?.capacity, 7);
    await world.stop();
  });

  test('by a cordon is announced', async () => {
    const world = new PresenceWorld();
    world.start();
    await world.clock.advance(5000);
    world.events.reasons.length = 0;
    world.meddle((node) => ({ ...node, spec: { unschedulable: true } }));
    await world.clock.advance(11_000);
    world.meddle((node) => ({ ...node, spec: {} }));
    await world.clock.advance(11_000);
    assert.deepEqual(world.events.reasons, ['NodeNotSchedulable', 'NodeSchedulable']);
    assert.equal(world.nodeRequests('PATCH'), 0);
    await world.stop();
  });
});

describe('a node that is deleted while the agent runs', () => {
  for (const told of [true, false]) {
    test(`is registered again, ${told ? 'as the watch tells' : 'as the next write shows'}; the lease gets its new owner`, async () => {
      const world = new PresenceWorld();
      world.start();
      await world.clock.advance(5000);
      const before = world.node?.metadata.uid;
      world.deleteNode(told);
      if (!told) world.change({ status: { swapBytes: 5 } });
      await world.clock.advance(6000);
      assert.ok(!world.exists);
      await world.clock.advance(2000);
      assert.equal(world.ready, 'True');
      assert.notEqual(world.node?.metadata.uid, before);
      assert.equal(world.lease?.metadata?.ownerReferences?.[0]?.uid, world.node?.metadata.uid);
      await world.stop();
    });
  }

  test('and made anew by somebody else gets no patch that was meant for the old one', async () => {
    const world = new PresenceWorld();
    world.start();
    await world.clock.advance(5000);
    world.server.onStored = undefined;
    world.server.store(nodePath('worker-1'), { metadata: { name: 'worker-1', uid: 'new' } });
    world.change({ status: { swapBytes: 5 } });
    await world.clock.advance(1000);
    assert.equal(world.ready, 'True');
    assert.equal(world.node?.metadata.uid, 'new');
    assert.equal(world.node?.status?.capacity?.['cpu'], '4');
    await world.stop();
  });

  test('does not come back from a machine that is shutting down', async () => {
    const world = new PresenceWorld();
    world.start();
    await world.clock.advance(5000);
    world.change({ health: { shuttingDown: true } });
    await world.clock.advance(100);
    world.deleteNode();
    await world.clock.advance(60_000);
    assert.equal(world.node, undefined);
    await world.stop();
  });
});

test('with registerNode false the agent waits for the object, and then keeps it true', async () => {
  const world = new PresenceWorld({ registerNode: false });
  world.start();
  await world.clock.advance(20_000);
  assert.deepEqual(world.server.requests('POST'), []);
  assert.match(world.warnings.lines[0]!, /registerNode is false/);
  world.server.store(nodePath('worker-1'), { metadata: { name: 'worker-1' } });
  await world.clock.advance(8000);
  assert.equal(world.ready, 'True');
  await world.stop();
});

test('the cluster’s decisions about the node are told when known and when they change', async () => {
  const cidrs: string[] = [];
  const cordons: boolean[] = [];
  const hostIps: string[] = [];
  const world = new PresenceWorld({
    onPodCidrs: (list) => cidrs.push(list.join()),
    onPlacement: ({ unschedulable }) => cordons.push(unschedulable),
    onHostIps: (ips) => hostIps.push(ips.join()),
  });
  world.start();
  await world.clock.advance(1000);
  world.meddle((node) => ({
    ...node,
    spec: { podCIDR: '10.1.0.0/24', podCIDRs: ['10.1.0.0/24', 'fd01::/64'] },
  }));
  world.meddle((node) => ({ ...node, spec: { ...node.spec, unschedulable: true } }));
  world.change({ status: { swapBytes: 5 } });
  await world.clock.advance(2000);
  const addresses = [{ type: 'InternalIP', address: '192.0.2.77' }];
  world.meddle((node) => ({ ...node, status: { ...node.status, addresses } }));
  assert.deepEqual(hostIps.slice(1), ['192.0.2.77']);
  assert.deepEqual(cidrs, ['10.1.0.0/24,fd01::/64']);
  assert.deepEqual(cordons, [false, true]);
  await world.stop();
});

test('nothing is left running after the end', async () => {
  const world = new PresenceWorld();
  world.start();
  await world.clock.advance(12_345);
  await world.stop();
  assert.equal(world.clock.nextTimer(), undefined);
});

test('name servers that are away hold up nothing but the addresses of a new node', async () => {
  const asked: number[] = [];
  let lookedUp: readonly string[] | undefined;
  const world = new PresenceWorld({
    readNetwork: async (patienceMs) => {
      asked.push(patienceMs);
      await sleep(world.clock, patienceMs);
      return { ...network, lookedUp };
    },
  });
  world.start();
  await world.clock.advance(200);
  assert.equal(world.exists, false);
  await world.clock.advance(2000);
  assert.equal(world.exists, true);
  assert.deepEqual(asked.slice(0, 2), [200, 2000]);
  const before = world.node?.status?.addresses;
  assert.ok(before?.some(({ type }) => type === 'InternalIP'));

  asked.length = 0;
  world.change({ health: { networkNotReady: 'no CNI' } });
  await world.clock.advance(200);
  assert.equal(world.ready, 'False');
  assert.deepEqual(world.node?.status?.addresses, before);
  assert.deepEqual(new Set(asked), new Set([200]));

  // The answer comes after all, and tells that it is there.
  lookedUp = ['10.0.0.6'];
  world.presence.wake();
  await world.clock.advance(2000);
  const [address] = world.node?.status?.addresses ?? [];
  assert.deepEqual(address, { type: 'InternalIP', address: '10.0.0.6' });
  await world.stop();
});
