import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { RequestGate } from './request-gate.ts';

const never = new AbortController().signal;

test('lets a burst through at once, and then as many a second as it should', async () => {
  const clock = new VirtualClock();
  const gate = new RequestGate({ qps: 50, burst: 100, clock });
  let passed = 0;
  for (let n = 0; n < 400; n++) void gate.pass('normal', never).then(() => passed++);
  await clock.advance(0);
  assert.equal(passed, 100);
  await clock.advance(1000);
  assert.equal(passed, 150);
  await clock.advance(60_000);
  assert.equal(passed, 400);
  assert.equal(gate.waiting, 0);
});

test('status reports go before everything else, in order', async () => {
  const clock = new VirtualClock();
  const gate = new RequestGate({ qps: 1, burst: 1, clock });
  const order: string[] = [];
  const ask = (name: string, priority: 'status' | 'normal') =>
    void gate.pass(priority, never).then(() => order.push(name));
  ask('first', 'normal');
  ask('a', 'normal');
  ask('b', 'normal');
  ask('s', 'status');
  ask('t', 'status');
  await clock.advance(10_000);
  assert.deepEqual(order, ['first', 's', 't', 'a', 'b']);
});

test('whoever gives up takes no permit', async () => {
  const clock = new VirtualClock();
  const gate = new RequestGate({ qps: 1, burst: 1, clock });
  await gate.pass('normal', never);
  const controller = new AbortController();
  const waiting = gate.pass('normal', controller.signal);
  let passed = false;
  void gate.pass('normal', never).then(() => {
    passed = true;
  });
  controller.abort(new Error('gone'));
  await assert.rejects(waiting, /gone/);
  await clock.advance(1000);
  assert.equal(passed, true);
});

test('zero means the defaults of Kubernetes clients, less than zero no limit', async () => {
  const clock = new VirtualClock();
  const count = async (qps: number, burst: number) => {
    const gate = new RequestGate({ qps, burst, clock });
    let passed = 0;
    for (let n = 0; n < 50; n++) void gate.pass('normal', never).then(() => passed++);
    await clock.advance(1000);
    return passed;
  };
  assert.equal(await count(0, 0), 15);
  assert.equal(await count(-1, 0), 50);
});
