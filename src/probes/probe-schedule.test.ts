import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { firstRun, nextRun, probeRhythm, type Run } from './probe-schedule.ts';

const rhythmOf = (options: Partial<Parameters<typeof probeRhythm>[0]> = {}) =>
  probeRhythm({
    kind: 'readiness',
    handler: 'network',
    timing: { periodMs: 10_000 },
    containerId: 'c1',
    openAt: 0,
    ...options,
  });

/** The runs of a probe that never succeeds, each taking `runMs`. */
function runs(rhythm: ReturnType<typeof probeRhythm>, count: number, runMs = 1): Run[] {
  const all: Run[] = [];
  let run = firstRun(rhythm, 0, true);
  for (; all.length < count; run = nextRun(rhythm, run.at + runMs, true)) all.push(run);
  return all;
}

describe('when a probe runs', () => {
  it('looks at once and then after doubling pauses, until the grid begins', () => {
    const rhythm = rhythmOf();
    const [looks, regular] = [runs(rhythm, 10).filter(({ look }) => look), rhythm.firstRegularAt];
    assert.deepEqual(
      looks.map(({ at }) => at),
      [0, 100, 300, 700, 1500, 3100, 6300].filter((at) => at < regular),
    );
    assert.ok(regular >= 5000 && regular < 10_000, String(regular));
  });

  it('looks less often where each look is a process', () => {
    const looks = runs(rhythmOf({ handler: 'exec' }), 10).filter(({ look }) => look);
    assert.deepEqual(looks.map(({ at }) => at).slice(0, 3), [0, 1000, 3000]);
  });

  it('never looks at liveness', () => {
    const rhythm = rhythmOf({ kind: 'liveness' });
    assert.deepEqual(firstRun(rhythm, 0, true), { at: rhythm.firstRegularAt, look: false });
  });

  it('stops looking once something has succeeded', () => {
    const rhythm = rhythmOf();
    assert.deepEqual(nextRun(rhythm, 1, false), { at: rhythm.firstRegularAt, look: false });
  });

  it('waits for the initial delay', () => {
    assert.deepEqual(firstRun(rhythmOf({ openAt: 30_000 }), 0, true), { at: 30_000, look: true });
  });

  it('spreads looks at containers nobody knows anything of', () => {
    const ids = Array.from({ length: 200 }, (_, index) => `container-${index}`);
    const first = ids.map((containerId) => firstRun(rhythmOf({ containerId }), 3_600_000, true));
    assert.ok(first.every(({ at, look }) => look && at >= 3_600_000 && at < 3_601_000));
    assert.ok(new Set(first.map(({ at }) => at)).size > 100);
  });

  it('spreads the grids of containers that start together, and not of one from start to start', () => {
    const ids = Array.from({ length: 200 }, (_, index) => `container-${index}`);
    const grids = ids.map((containerId) => rhythmOf({ containerId }).firstRegularAt);
    assert.ok(new Set(grids).size > 150);
    assert.equal(rhythmOf().firstRegularAt, rhythmOf().firstRegularAt);
  });

  it('keeps to a grid that nothing moves', () => {
    const periodMs = fc.integer({ min: 10, max: 100_000 });
    const openAt = fc.integer({ min: 0, max: 1_000_000 });
    fc.assert(
      fc.property(
        periodMs,
        openAt,
        fc.string(),
        fc.array(fc.integer({ min: 0, max: 250_000 })),
        (p, open, id, took) => {
          const rhythm = rhythmOf({ timing: { periodMs: p }, openAt: open, containerId: id });
          assert.ok(rhythm.firstRegularAt >= open + p / 2 && rhythm.firstRegularAt <= open + p);
          let run = firstRun(rhythm, open, true);
          for (const runMs of took) {
            const after = run.at + runMs;
            const next = nextRun(rhythm, after, true);
            assert.ok(next.at > after, 'no run before the former one is over');
            assert.ok(next.at <= after + p, 'no full period without a run');
            if (next.look) assert.ok(next.at < rhythm.firstRegularAt);
            else assert.equal((next.at - rhythm.firstRegularAt) % p, 0);
            run = next;
          }
        },
      ),
    );
  });
});
