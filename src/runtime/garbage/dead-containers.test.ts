import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  type DeadContainerRules,
  type Instance,
  type PodInstances,
  surplusDeadContainers,
} from './dead-containers.ts';

const noRules: DeadContainerRules = { perContainer: -1, total: -1, minAgeMs: 0 };
const instance = (id: string, createdAt: number, state: Instance['state'] = 'Exited'): Instance => ({
  id,
  name: id.replace(/\d.*/, ''),
  state,
  createdAt,
  attempt: 0,
});
const pod = (uid: string, containers: Instance[], isGone = false): PodInstances => ({
  uid,
  isGone,
  containers: containers.toSorted((a, b) => b.createdAt - a.createdAt),
});
const surplus = (pods: PodInstances[], rules: Partial<DeadContainerRules>, now = 1000) =>
  surplusDeadContainers(pods, { ...noRules, ...rules }, now)
    .map(({ container }) => container.id)
    .sort();

describe('dead containers', () => {
  const web = pod('p1', [
    instance('a1', 10),
    instance('a2', 20),
    instance('a3', 30),
    instance('a4', 40, 'Running'),
  ]);
  const job = pod('p2', [instance('b1', 15), instance('b2', 25), instance('b3', 35)]);

  it('without limits all stay', () => assert.deepEqual(surplus([web, job], {}), []));

  it('of each container so many behind the newest', () => {
    assert.deepEqual(surplus([web, job], { perContainer: 1 }), ['a1', 'a2', 'b1']);
    assert.deepEqual(surplus([web, job], { perContainer: 0 }), ['a1', 'a2', 'a3', 'b1', 'b2']);
  });

  it('young ones stay', () => {
    assert.deepEqual(surplus([web, job], { perContainer: 0, minAgeMs: 985 }), ['a1', 'b1']);
  });

  it('the total is shared by all containers, then the oldest go', () => {
    assert.deepEqual(surplus([web, job], { total: 5 }), []);
    assert.deepEqual(surplus([web, job], { total: 4 }), ['a1']);
    assert.deepEqual(surplus([web, job], { total: 2 }), ['a1', 'a2', 'b1']);
    assert.deepEqual(surplus([web, job], { total: 1 }), ['a1', 'a2', 'b1', 'b2']);
    assert.deepEqual(surplus([web, job], { total: 0 }), ['a1', 'a2', 'a3', 'b1', 'b2']);
  });

  it('of a pod that is gone nothing dead stays', () => {
    assert.deepEqual(surplus([{ ...web, isGone: true }, job], {}), ['a1', 'a2', 'a3']);
  });

  it('neither running nor newest instances of pods that stay are ever removed, and each goes once', () => {
    const state = fc.constantFrom('Created', 'Running', 'Exited', 'Unknown');
    const some = fc.array(fc.tuple(fc.constantFrom('a', 'b'), fc.nat(100), state), { maxLength: 8 });
    const limits = fc.record({
      perContainer: fc.integer({ min: -1, max: 3 }),
      total: fc.integer({ min: -1, max: 6 }),
      minAgeMs: fc.nat(50),
    });
    fc.assert(
      fc.property(fc.array(fc.tuple(some, fc.boolean()), { maxLength: 4 }), limits, (list, rules) => {
        const pods = list.map(([containers, isGone], p) =>
          pod(
            `p${p}`,
            containers.map(([name, at, is], n) => ({ ...instance(`${name}${p}-${n}`, at, is), name })),
            isGone,
          ),
        );
        const removed = surplusDeadContainers(pods, rules, 100);
        assert.equal(new Set(removed.map(({ container }) => container.id)).size, removed.length);
        for (const { podUid, container } of removed) {
          const { containers = [], isGone } = pods.find(({ uid }) => uid === podUid) ?? {};
          assert.ok(['Exited', 'Unknown'].includes(container.state));
          assert.ok(100 - container.createdAt >= rules.minAgeMs);
          if (!isGone)
            assert.notEqual(
              containers.find(({ name }) => name === container.name),
              container,
            );
        }
      }),
    );
  });
});
