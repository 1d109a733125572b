import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SystemCgroups } from './system-cgroups.ts';

test('the cgroups of the system are told by the names that statistics have for them', async () => {
  const pods = { pods: '/kubepods', burstable: '/kubepods/burstable', besteffort: '/kubepods/besteffort' };
  const given = { endpoint: 'unix:///nowhere.sock', runtime: '/runtime', misc: '/system', pods };
  const groups = new SystemCgroups(1, given);
  await groups.find();
  const { kubelet: _, ...known } = Object.fromEntries(groups.known());
  assert.deepEqual(known, { runtime: '/runtime', misc: '/system', ...pods });
  const bare = new SystemCgroups(1, { ...given, runtime: undefined, misc: undefined, pods: undefined });
  await bare.find();
  assert.deepEqual(
    [...bare.known().keys()].filter((name) => name !== 'kubelet'),
    [],
  );
});
