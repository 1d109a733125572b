import assert from 'node:assert/strict';
import { it } from 'node:test';
import { declaredFeatures } from './declared-features.ts';

const sockets = 'ExtendWebSocketsToKubelet';
const restart = 'RestartAllContainersOnContainerExits';
const users = 'UserNamespacesHostNetworkSupport';
const gates =
  (...on: string[]) =>
  (name: string) =>
    on.includes(name);
const able = { userNamespacesHostNetwork: true };

it('a node declares what its gates and its runtime allow, and nothing without the gate for it', () => {
  const all = gates('NodeDeclaredFeatures', sockets, restart, users);
  assert.deepEqual(declaredFeatures(all, able), { declared: [sockets, restart, users], missing: [] });
  for (const runtime of [undefined, { userNamespacesHostNetwork: false }]) {
    assert.deepEqual(declaredFeatures(all, runtime), { declared: [sockets, restart], missing: [users] });
  }
  const none = declaredFeatures(gates('NodeDeclaredFeatures'), able);
  assert.deepEqual(none, { declared: [], missing: [sockets, restart, users] });
  assert.deepEqual(declaredFeatures(gates(restart), able), { declared: undefined, missing: [] });
});
