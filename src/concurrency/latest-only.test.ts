import assert from 'node:assert/strict';
import { it } from 'node:test';
import { LatestOnly } from './latest-only.ts';
import { settle } from './virtual-clock.ts';

it('LatestOnly makes one more run of any number of requests, and survives failures', async () => {
  const gates: (() => void)[] = [];
  const errors: unknown[] = [];
  let runs = 0;
  const latest = new LatestOnly(
    async () => {
      runs++;
      await new Promise<void>((resolve) => gates.push(resolve));
      if (runs === 1) throw new Error('first');
    },
    (error) => errors.push(error),
  );
  for (let i = 0; i < 5; i++) latest.refresh();
  await settle();
  assert.equal(runs, 1);
  gates.shift()!();
  await settle();
  assert.equal(runs, 2);
  gates.shift()!();
  await settle();
  assert.deepEqual([runs, errors.length], [2, 1]);
});
