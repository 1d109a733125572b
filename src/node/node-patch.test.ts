import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { applyStrategicPatch } from './fixtures/strategic-merge.ts';
import { nodePatch } from './node-patch.ts';
import type { Node, NodeCondition } from './node-types.ts';

const text = fc.stringMatching(/^[a-c]{1,2}$/);
const map = fc.dictionary(text, text, { maxKeys: 4 });
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const condition = (type: string): fc.Arbitrary<NodeCondition> =>
  fc.record({
    type: fc.constant(type),
    status: fc.constantFrom('True', 'False'),
    message: text,
    lastHeartbeatTime: text,
  });
const status = fc.record({
  capacity: maybe(map),
  allocatable: maybe(map),
  conditions: fc.tuple(condition('A'), condition('B'), condition('C')),
  addresses: maybe(
    fc.array(fc.record({ type: fc.constantFrom('InternalIP', 'Hostname'), address: text }), { maxLength: 4 }),
  ),
  images: maybe(fc.array(fc.record({ names: fc.array(text), sizeBytes: fc.nat(3) }), { maxLength: 3 })),
  volumesInUse: maybe(fc.array(text, { maxLength: 3 })),
  daemonEndpoints: maybe(fc.record({ kubeletEndpoint: fc.record({ Port: fc.nat(3) }) })),
});
const node: fc.Arbitrary<Node> = fc.record({
  metadata: fc.record({
    name: fc.constant('worker-1'),
    labels: maybe(map),
    annotations: maybe(map),
  }),
  status: maybe(status),
}) as fc.Arbitrary<Node>;

/** What is empty is absent, as the API server writes it. */
function compact(value: unknown): unknown {
  const text = JSON.stringify(value, (_key, inner: unknown) => {
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) {
      return Array.isArray(inner) && inner.length === 0 ? undefined : inner;
    }
    const kept = Object.entries(inner)
      .filter(([, item]) => item !== undefined && JSON.stringify(compact(item)) !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1));
    return kept.length === 0 ? undefined : Object.fromEntries(kept);
  });
  return text === undefined ? undefined : JSON.parse(text);
}

describe('a patch', () => {
  test('applied to the old node gives the new one', () => {
    fc.assert(
      fc.property(node, node, (before, after) => {
        // Conditions are never taken away: a node that has some keeps them.
        fc.pre(before.status === undefined || after.status !== undefined);
        const patch = nodePatch(before, after);
        assert.deepEqual(compact(applyStrategicPatch(before, patch ?? {})), compact(after));
      }),
    );
  });

  test('is none where nothing changed, however it is written', () => {
    fc.assert(
      fc.property(node, (same) => {
        assert.equal(nodePatch(same, structuredClone(same)), undefined);
        assert.equal(nodePatch(same, (compact(same) ?? {}) as Node), undefined);
      }),
    );
  });

  test('without heartbeats has no heartbeat in it, and is none where only those moved', () => {
    fc.assert(
      fc.property(node, node, (before, after) => {
        const patch = nodePatch(before, after, { ignoreHeartbeats: true });
        const known = new Set(before.status?.conditions?.map(({ type }) => type));
        const { conditions = [] } = (patch?.['status'] ?? {}) as { conditions?: NodeCondition[] };
        for (const item of conditions) {
          if (known.has(item.type)) assert.equal(item.lastHeartbeatTime, undefined);
        }
        const moved = structuredClone(before);
        for (const item of moved.status?.conditions ?? []) item.lastHeartbeatTime = 'later';
        assert.equal(nodePatch(before, moved, { ignoreHeartbeats: true }), undefined);
      }),
    );
  });
});

test('a patch holds only what changed', () => {
  const before: Node = {
    metadata: { name: 'n', labels: { a: '1', b: '2' } },
    status: {
      capacity: { cpu: '4', gone: '1' },
      addresses: [
        { type: 'InternalIP', address: '10.0.0.5' },
        { type: 'Hostname', address: 'n' },
      ],
      conditions: [
        { type: 'Ready', status: 'False', message: 'm' },
        { type: 'NetworkUnavailable', status: 'False' },
      ],
    },
  };
  const after: Node = {
    metadata: { name: 'n', labels: { a: '1', b: '3' } },
    status: {
      capacity: { cpu: '4' },
      addresses: [
        { type: 'InternalIP', address: '10.0.0.5' },
        { type: 'InternalIP', address: 'fd00::5' },
        { type: 'Hostname', address: 'n' },
      ],
      conditions: [
        { type: 'NetworkUnavailable', status: 'False' },
        { type: 'Ready', status: 'True', message: 'm' },
      ],
    },
  };
  assert.deepEqual(nodePatch(before, after), {
    metadata: { labels: { b: '3' } },
    status: {
      capacity: { gone: null },
      conditions: [{ type: 'Ready', status: 'True' }],
      addresses: [...(after.status?.addresses ?? []), { $patch: 'replace' }],
    },
  });
});
