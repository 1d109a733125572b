import assert from 'node:assert/strict';
import { it } from 'node:test';
import { declaredFeatures } from './declared-features.ts';

const feature = 'RestartAllContainersOnContainerExits';
const gates =
  (...on: string[]) =>
  (name: string) =>
    on.includes(name);

it('a node declares what its gates allow, and nothing without the gate for it', () => {
  assert.deepEqual(declaredFeatures(gates('NodeDeclaredFeatures', feature)), {
    declared: [feature],
    missing: [],
  });
  assert.deepEqual(declaredFeatures(gates('NodeDeclaredFeatures')), { declared: [], missing: [feature] });
  assert.deepEqual(declaredFeatures(gates(feature)), { declared: undefined, missing: [] });
});
