import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { settle, VirtualClock } from '../concurrency/virtual-clock.ts';
import { FakeApiServer, failure, leasePathOf, unreachable } from './fixtures/fake-api-server.ts';
import { RecordedWarnings } from './fixtures/node-world.ts';
import { NodeLease } from './node-lease.ts';
import type { Lease } from './node-types.ts';
import { OwnNode } from './own-node.ts';

/** A clock whose wall time can be set while its timers go on. */
class AdjustableClock extends VirtualClock {
  offset = 0;

  override now(): number {
    return super.now() + this.offset;
  }
}

function world() {
  const clock = new AdjustableClock();
  const server = new FakeApiServer(clock);
  const own = new OwnNode();
  const warnings = new RecordedWarnings();
  const lease = new NodeLease({
    client: server,
    nodeName: 'worker-1',
    own,
    durationSeconds: 40,
    timeoutMs: 10_000,
    clock,
    logger: warnings,
    random: () => 0,
  });
  const end = new AbortController();
  const stored = () => server.objects.get(leasePathOf('worker-1')) as unknown as Lease | undefined;
  const register = (uid = 'u1') =>
    own.set({ metadata: { name: 'worker-1', uid, resourceVersion: `v-${uid}` } });
  const running = lease.run(end.signal);
  const stop = async () => {
    end.abort();
    await running;
    assert.equal(clock.nextTimer(), undefined);
  };
  /** Somebody else renews the lease. */
  const meddle = () => {
    const found = structuredClone(stored()!);
    server.store(leasePathOf('worker-1'), {
      ...found,
      spec: { ...found.spec, renewTime: new Date(clock.now() + 5).toISOString() },
    } as never);
  };
  return { clock, server, own, warnings, lease, stored, register, stop, meddle };
}

test('waits for its owner, then is created and renewed every ten seconds', async () => {
  const { clock, server, lease, stored, register, stop } = world();
  await clock.advance(60_000);
  assert.equal(server.seen.length, 0);
  register();
  await settle();
  const createdAt = clock.now();
  assert.deepEqual(
    { ...stored(), metadata: { ...stored()?.metadata, uid: '', resourceVersion: '' } },
    {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: {
        name: 'worker-1',
        namespace: 'kube-node-lease',
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'worker-1', uid: 'u1' }],
        uid: '',
        resourceVersion: '',
      },
      spec: {
        holderIdentity: 'worker-1',
        leaseDurationSeconds: 40,
        renewTime: new Date(createdAt).toISOString().replace('Z', '000Z'),
      },
    },
  );
  await clock.advance(60_000);
  assert.equal(server.requests('PUT').length, 6);
  assert.equal(server.requests('GET').length, 1);
  assert.equal(lease.lastRenewal, createdAt + 60_000);
  await stop();
});

describe('a failure', () => {
  test('is tried again within 100 ms to 7 s, long before the lease ends', async () => {
    const { clock, server, warnings, register, stop } = world();
    register();
    await clock.advance(5000);
    server.seen.length = 0;
    server.fault = () => unreachable('connection lost');
    await clock.advance(30_000);
    const at = server.seen.map((seen) => seen.at);
    const gaps = at.slice(1).map((time, index) => time - at[index]!);
    assert.deepEqual(gaps.slice(0, 8), [100, 200, 400, 800, 1600, 3200, 6400, 7000]);
    // The client tells of it, for all who ask.
    assert.deepEqual(warnings.lines, []);
    assert.ok(server.seen.every(({ priority }) => priority === 'heartbeat'));
    server.fault = undefined;
    const before = server.seen.length;
    await clock.advance(7000);
    assert.equal(server.seen[before]?.method, 'GET');
    assert.equal(server.seen.at(-1)?.method, 'PUT');
    await stop();
  });

  test('by silence is given up after the time limit', async () => {
    const { clock, server, lease, register, stop } = world();
    register();
    await clock.advance(5000);
    server.fault = () => 'hang';
    await clock.advance(10_000);
    server.fault = undefined;
    await clock.advance(6000);
    assert.ok(clock.now() - lease.lastRenewal! < 1000);
    await stop();
  });

  test('for lack of rights is told with the remedy', async () => {
    const { clock, server, warnings, register, stop } = world();
    server.fault = () => failure(403, 'Forbidden', 'leases is forbidden');
    register();
    await clock.advance(1000);
    assert.match(warnings.lines[0]!, /Cannot renew the lease.*system:node:worker-1/);
    await stop();
  });
});

test('a lease that was changed or deleted is renewed all the same, in the same turn', async () => {
  const { clock, server, stored, register, meddle, stop } = world();
  register();
  await clock.advance(5000);
  meddle();
  await clock.advance(6000);
  assert.equal(Date.parse(stored()!.spec!.renewTime!), clock.now() - 1000);
  server.objects.delete(leasePathOf('worker-1'));
  await clock.advance(10_000);
  assert.equal(Date.parse(stored()!.spec!.renewTime!), clock.now() - 1000);
  await stop();
});

test('a node that was made anew becomes the owner at once', async () => {
  const { clock, stored, register, stop } = world();
  register();
  await clock.advance(5000);
  register('u2');
  await settle();
  assert.equal(stored()?.metadata?.ownerReferences?.[0]?.uid, 'u2');
  await stop();
});

test('renew times only go forwards, however the clock is set', async () => {
  const { clock, stored, register, stop } = world();
  register();
  await settle();
  let last = Date.parse(stored()!.spec!.renewTime!);
  for (const offset of [-3_600_000, 0, 7_200_000, -86_400_000]) {
    clock.offset = offset;
    await clock.advance(10_000);
    const next = Date.parse(stored()!.spec!.renewTime!);
    assert.ok(next > last, `${next} after ${last}`);
    last = next;
  }
  await stop();
});

test('a second agent under the same name is named, an answer that got lost is not', async () => {
  const { clock, server, warnings, register, meddle, stop } = world();
  register();
  await clock.advance(5000);
  for (let turn = 0; turn < 3; turn++) {
    let lost = false;
    server.fault = ({ method }) => (method === 'PUT' && !lost ? ((lost = true), 'lose-answer') : undefined);
    await clock.advance(10_000);
  }
  server.fault = undefined;
  assert.ok(!warnings.lines.some((line) => line.includes('Another agent')));
  for (let turn = 0; turn < 4; turn++) {
    meddle();
    await clock.advance(10_000);
  }
  assert.equal(warnings.lines.filter((line) => line.includes('Another agent')).length, 1);
  await stop();
});
