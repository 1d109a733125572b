import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ClaimSighting, claimOf, isOfAnotherMachine } from './name-claim.ts';
import type { Node } from './node-types.ts';

const own = { machineId: 'aa', systemUuid: 'UUID-1' };
const nodeOf = (machineID: string, systemUUID: string) =>
  ({ metadata: { name: 'worker-1' }, status: { nodeInfo: { machineID, systemUUID } } }) as Node;

describe('a Node object is', () => {
  for (const [machineID, systemUUID, foreign] of [
    ['bb', 'uuid-2', true],
    ['aa', 'uuid-2', false], // a clone, or a new main board
    ['bb', 'uuid-1', false], // set up anew, or one container of several on this machine
    ['', 'uuid-2', false],
    ['bb', '', false],
  ] as const) {
    test(`${foreign ? 'another machine’s' : 'this machine’s'} with ${machineID || '-'} and ${systemUUID || '-'}`, () =>
      assert.equal(isOfAnotherMachine(nodeOf(machineID, systemUUID), own), foreign));
  }
  test('this machine’s when nothing wrote its status yet', () =>
    assert.equal(isOfAnotherMachine({ metadata: { name: 'worker-1' } }, own), false));
});

describe('its holder', () => {
  const now = Date.UTC(2026, 0, 2);
  const lease = (age: number) => ({
    spec: { leaseDurationSeconds: 40, renewTime: new Date(now - age).toISOString() },
  });

  test('lives while the lease does', () => {
    assert.equal(claimOf(lease(39_000), undefined, now).alive, true);
    assert.equal(claimOf(lease(41_000), undefined, now).alive, false);
    assert.equal(claimOf(undefined, undefined, now).alive, false);
  });

  test('is gone when its clock was ahead and it is not seen to renew', () => {
    const ahead = lease(-3_600_000);
    let sighting: ClaimSighting | undefined;
    const alive = [0, 20_000, 41_000].map((later) => {
      const claim = claimOf(ahead, sighting, now + later);
      sighting = claim.sighting;
      return claim.alive;
    });
    assert.deepEqual(alive, [true, true, false]);
    assert.equal(claimOf(lease(-3_610_000), sighting, now + 50_000).alive, true);
  });
});
