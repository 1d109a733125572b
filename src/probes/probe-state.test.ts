import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { probeKinds } from './probe-kind.ts';
import { afterResult, initialState, type Verdict } from './probe-state.ts';

describe('thresholds of a probe', () => {
  // One letter a result (s, f) and, after it, one a verdict (S, F, ? for unknown).
  const table: readonly (readonly [
    string,
    'startup' | 'liveness' | 'readiness',
    number,
    number,
    string,
    string,
  ])[] = [
    ['liveness is fine before anything came', 'liveness', 1, 3, '', 'S'],
    ['readiness is missing before anything came', 'readiness', 1, 3, '', 'F'],
    ['startup is open before anything came', 'startup', 1, 3, '', '?'],
    ['one failure below the threshold', 'liveness', 1, 3, 'f', 'S'],
    ['failures in a row', 'liveness', 1, 3, 'fff', 'F'],
    ['a success starts the count anew', 'liveness', 1, 3, 'ffsff', 'S'],
    ['a threshold of one', 'liveness', 1, 1, 'f', 'F'],
    ['startup succeeds', 'startup', 1, 30, 'fffs', 'S'],
    ['startup fails for good', 'startup', 1, 2, 'ff', 'F'],
    ['successes in a row', 'readiness', 3, 1, 'sss', 'S'],
    ['a failure between successes', 'readiness', 3, 1, 'ssfss', 'F'],
    ['ready, and back', 'readiness', 1, 2, 'sffs', 'S'],
  ];
  for (const [name, kind, successThreshold, failureThreshold, results, verdict] of table) {
    it(name, () => {
      let state = initialState(kind);
      for (const letter of results) {
        state = afterResult(state, letter === 's' ? 'success' : 'failure', {
          successThreshold,
          failureThreshold,
        });
      }
      assert.equal(state.verdict, { S: 'success', F: 'failure', '?': 'unknown' }[verdict]);
    });
  }

  it('says what the last results say, or else keeps its word', () => {
    const results = fc.array(fc.constantFrom('success' as const, 'failure' as const), { maxLength: 60 });
    const threshold = fc.integer({ min: 1, max: 5 });
    fc.assert(
      fc.property(fc.constantFrom(...probeKinds), results, threshold, threshold, (kind, all, s, f) => {
        let state = initialState(kind);
        let expected: Verdict = state.verdict;
        for (const [at, result] of all.entries()) {
          state = afterResult(state, result, { successThreshold: s, failureThreshold: f });
          const needed = result === 'success' ? s : f;
          const tail = all.slice(0, at + 1).slice(-needed);
          if (tail.length === needed && tail.every((other) => other === result)) expected = result;
          assert.equal(state.verdict, expected);
        }
      }),
    );
  });
});
