import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matchesNode } from './node-affinity.ts';

const node = { name: 'n1', labels: { zone: 'a', disk: 'ssd', cores: '8' } };
type Term = { matchExpressions?: object[]; matchFields?: object[] };
const requiring = (...nodeSelectorTerms: Term[]) =>
  ({
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
  }) as Parameters<typeof matchesNode>[0];
const term = (key: string, operator: string, ...values: string[]) => ({
  matchExpressions: [{ key, operator, values }],
});

test('a pod that asks for nothing matches every node', () => {
  assert.equal(matchesNode({}, node), true);
});

test('nodeSelector: every label must be there', () => {
  assert.equal(matchesNode({ nodeSelector: { zone: 'a', disk: 'ssd' } }, node), true);
  assert.equal(matchesNode({ nodeSelector: { zone: 'a', disk: 'hdd' } }, node), false);
  assert.equal(matchesNode({ nodeSelector: { constructor: 'x' } }, node), false);
});

test('terms are alternatives, what is in one of them is asked for together', () => {
  assert.equal(matchesNode(requiring(term('zone', 'In', 'b'), term('disk', 'In', 'ssd')), node), true);
  const both = {
    matchExpressions: [
      ...term('zone', 'In', 'b').matchExpressions,
      ...term('disk', 'Exists').matchExpressions,
    ],
  };
  assert.equal(matchesNode(requiring(both), node), false);
  assert.equal(matchesNode(requiring(), node), false);
  assert.equal(matchesNode(requiring({}), node), false);
  assert.equal(
    matchesNode({ ...requiring(term('zone', 'In', 'a')), nodeSelector: { zone: 'b' } }, node),
    false,
  );
});

test('operators', () => {
  const cases: [term: Term, matches: boolean][] = [
    [term('zone', 'In', 'a', 'b'), true],
    [term('none', 'In', 'a'), false],
    [term('zone', 'NotIn', 'a'), false],
    [term('none', 'NotIn', 'a'), true],
    [term('zone', 'Exists'), true],
    [term('none', 'Exists'), false],
    [term('none', 'DoesNotExist'), true],
    [term('zone', 'DoesNotExist'), false],
    [term('cores', 'Gt', '7'), true],
    [term('cores', 'Gt', '8'), false],
    [term('cores', 'Lt', '9'), true],
    [term('cores', 'Lt', '8'), false],
    [term('zone', 'Gt', '1'), false],
    [term('cores', 'Gt', 'many'), false],
    [term('cores', 'Like', '8'), false],
    [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n1'] }] }, true],
    [{ matchFields: [{ key: 'metadata.name', operator: 'NotIn', values: ['n1'] }] }, false],
    [{ matchFields: [{ key: 'metadata.uid', operator: 'In', values: ['n1'] }] }, false],
  ];
  for (const [one, matches] of cases)
    assert.equal(matchesNode(requiring(one), node), matches, JSON.stringify(one));
});
