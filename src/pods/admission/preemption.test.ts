import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { isCriticalPod } from '../../kubernetes/pod-identity.ts';
import { podQosClass } from '../../kubernetes/qos.ts';
import type { Pod, QosClass } from '../../kubernetes/types.ts';
import { testPod } from '../fixtures/pod-model.ts';
import { chooseVictims } from './preemption.ts';
import { heldBy, type Shortage } from './resource-fit.ts';

interface Sketch {
  readonly cpu: number;
  readonly memory: number;
  readonly qos: QosClass;
  readonly priority: number;
}

function podOf(name: string, { cpu, memory, qos, priority }: Sketch): Pod {
  const amounts = { cpu: `${cpu}m`, memory: `${memory}` };
  const resources = {
    Guaranteed: { requests: amounts, limits: amounts },
    Burstable: { requests: amounts },
    BestEffort: {},
  }[qos];
  const pod = testPod({ priority, containers: [{ name: 'web', image: 'web:1', resources }] });
  return { ...pod, metadata: { ...pod.metadata, name, uid: name } };
}

const critical = podOf('critical', { cpu: 1, memory: 1, qos: 'Burstable', priority: 2_000_000_000 });
/** So much is missing, beside what is used and asked for. */
const lacking = (amounts: Readonly<Record<string, number>>): Shortage[] =>
  Object.entries(amounts).map(([name, missing]) => ({ name, requested: missing, used: 7, capacity: 7 }));

/** `name` of each victim, or `none` when there are not enough. */
function chosen(
  amounts: Readonly<Record<string, number>>,
  running: Readonly<Record<string, Partial<Sketch>>>,
) {
  const pods = Object.entries(running).map(([name, sketch]) =>
    podOf(name, { cpu: 100, memory: 100, qos: 'Burstable', priority: 0, ...sketch }),
  );
  return (
    chooseVictims(critical, lacking(amounts), pods)
      ?.map(({ metadata }) => metadata.name)
      .join(' ') ?? 'none'
  );
}

suite('who goes for a critical pod', () => {
  const table: [what: string, Record<string, number>, Record<string, Partial<Sketch>>, string][] = [
    ['the smallest that suffices', { cpu: 100 }, { big: { cpu: 900 }, right: { cpu: 120 } }, 'right'],
    [
      'one large pod, not many small ones',
      { cpu: 200 },
      { a: {}, b: {}, c: {}, large: { cpu: 250 } },
      'large',
    ],
    ['the lesser class', { cpu: 100 }, { better: { qos: 'Guaranteed' }, lesser: { cpu: 800 } }, 'lesser'],
    ['BestEffort for a place', { pods: 1 }, { worker: {}, free: { qos: 'BestEffort' } }, 'free'],
    [
      'of the better class only what the lesser ones lack',
      { cpu: 250 },
      { a: { qos: 'Guaranteed', cpu: 300 }, b: { qos: 'Guaranteed', cpu: 150 }, c: {} },
      'b c',
    ],
    ['one that brings both', { cpu: 50, memory: 50 }, { c: { memory: 1 }, m: { cpu: 1 }, both: {} }, 'both'],
    [
      'nobody who became needless',
      { cpu: 300, memory: 9 },
      { a: { cpu: 200, memory: 1 }, b: { cpu: 300 } },
      'b',
    ],
    ['nobody when all would not do', { cpu: 201 }, { a: {}, b: {} }, 'none'],
    ['no other critical pod', { cpu: 100 }, { system: { priority: 2_000_000_000 } }, 'none'],
  ];
  for (const [what, amounts, running, victims] of table) {
    test(what, () => assert.equal(chosen(amounts, running), victims));
  }

  test('a critical pod of lower priority, for one that has a priority', () => {
    const other = podOf('other', { cpu: 100, memory: 1, qos: 'Burstable', priority: 2_000_000_000 });
    const above = podOf('above', { cpu: 1, memory: 1, qos: 'Burstable', priority: 2_000_001_000 });
    assert.deepEqual(chooseVictims(above, lacking({ cpu: 100 }), [other]), [other]);
    const { priority: _, ...spec } = above.spec;
    assert.equal(chooseVictims({ ...above, spec }, lacking({ cpu: 100 }), [other]), undefined);
  });
});

const sketches = fc.array(
  fc.record({
    cpu: fc.integer({ min: 1, max: 5 }).map((tenths) => tenths * 100),
    memory: fc.integer({ min: 1, max: 5 }),
    qos: fc.constantFrom<QosClass>('Guaranteed', 'Burstable', 'BestEffort'),
    priority: fc.constantFrom(0, 5, 2_000_000_000),
  }),
  { maxLength: 7 },
);
const needs = fc.record({ cpu: fc.integer({ min: 1, max: 1200 }), memory: fc.integer({ min: 1, max: 12 }) });
const pods = (given: readonly Sketch[]) => given.map((sketch, index) => podOf(`pod-${index}`, sketch));
const frees = (gone: readonly Pod[], amounts: Record<string, number>) =>
  Object.entries(amounts).every(
    ([name, amount]) => gone.reduce((sum, pod) => sum + heldBy(pod, name), 0) >= amount,
  );
const subsets = (of: readonly Pod[]) =>
  Array.from({ length: 2 ** of.length }, (_, bits) => of.filter((_pod, index) => bits & (1 << index)));
const ofClass = (of: readonly Pod[], qos: QosClass) => of.filter(({ spec }) => podQosClass(spec) === qos);

suite('what always holds of those who go', () => {
  test('they suffice, none is critical or needless, and there are some whenever some would do', () => {
    fc.assert(
      fc.property(sketches, needs, (given, amounts) => {
        const running = pods(given);
        const victims = chooseVictims(critical, lacking(amounts), running);
        const mayGo = running.filter((pod) => !isCriticalPod(pod));
        assert.equal(victims !== undefined, frees(mayGo, amounts));
        if (!victims) return;
        assert.ok(frees(victims, amounts));
        for (const victim of victims) {
          assert.ok(mayGo.includes(victim));
          assert.ok(
            !frees(
              victims.filter((pod) => pod !== victim),
              amounts,
            ),
            'one could have stayed',
          );
        }
      }),
    );
  });

  test('of one resource, no set spares more of the better classes', () => {
    fc.assert(
      fc.property(sketches, fc.integer({ min: 1, max: 1200 }), (given, cpu) => {
        const running = pods(given);
        const victims = chooseVictims(critical, lacking({ cpu }), running);
        if (!victims) return;
        const count = (set: readonly Pod[]) =>
          [ofClass(set, 'Guaranteed').length, ofClass(set, 'Burstable').length] as const;
        const enough = subsets(running.filter((pod) => !isCriticalPod(pod))).filter((set) =>
          frees(set, { cpu }),
        );
        const [guaranteed] = count(victims);
        for (const other of enough) assert.ok(guaranteed <= count(other)[0]);
      }),
    );
  });
});
