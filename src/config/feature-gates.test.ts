import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FEATURE_GATES, GATE_NAMES, resolveFeatureGates } from './feature-gates.ts';

test('defaults without overrides', () => {
  const { gates, problems, warnings } = resolveFeatureGates({});
  for (const name of GATE_NAMES) assert.equal(gates.enabled(name), FEATURE_GATES[name].default, name);
  assert.deepEqual([problems, warnings], [[], []]);
});

test('AllAlpha and AllBeta switch their stage, except gates named themselves', () => {
  const { gates, problems } = resolveFeatureGates({
    AllAlpha: true,
    MemoryQoS: false,
    AllBeta: false,
    EnvFiles: true,
  });
  assert.deepEqual(problems, []);
  for (const name of GATE_NAMES) {
    if (name === 'AllAlpha' || name === 'AllBeta') continue;
    const { stage, default: byDefault } = FEATURE_GATES[name];
    const expected = stage === 'Alpha' ? true : stage === 'Beta' ? false : byDefault;
    const named = name === 'MemoryQoS' ? false : name === 'EnvFiles' ? true : expected;
    assert.equal(gates.enabled(name), named, name);
  }
});

test('refuses unknown and locked gates, warns about gates on their way out', () => {
  const { problems, warnings } = resolveFeatureGates({
    MemoryQos: true,
    NodeSwap: false,
    KubeletPSI: true,
    toString: true,
    AllowDNSOnlyNodeCSR: true,
  });
  assert.deepEqual(problems, [
    ['MemoryQos', 'unknown feature gate; did you mean MemoryQoS?'],
    ['NodeSwap', 'cannot be set to false: the gate is locked to true'],
    ['toString', 'unknown feature gate'],
  ]);
  assert.equal(warnings.length, 2);
});
