import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { importCircles } from './import-circles.ts';

const graph = (imports: Readonly<Record<string, readonly string[]>>) => new Map(Object.entries(imports));

describe('circles of imports', () => {
  it('are none where files share what they import', () => {
    assert.deepEqual(importCircles(graph({ a: ['b', 'c'], b: ['c'], c: ['outside'] })), []);
  });

  it('are told file by file, without what leads to them', () => {
    assert.deepEqual(importCircles(graph({ a: ['b'], b: ['c'], c: ['d'], d: ['b'] })), [['b', 'c', 'd']]);
  });

  it('are found behind files that were seen before, and when a file imports itself', () => {
    assert.deepEqual(importCircles(graph({ a: ['b'], b: [], c: ['b', 'd'], d: ['c'], e: ['e'] })), [
      ['c', 'd'],
      ['e'],
    ]);
  });
});
