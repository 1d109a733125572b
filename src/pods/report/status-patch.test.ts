import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PodStatus } from '../../kubernetes/types.ts';
import { type StatusPatch, statusPatch } from './status-patch.ts';

const ready = { type: 'Ready', status: 'True', lastTransitionTime: 't' };
const web = { name: 'web', image: 'i', imageID: '', ready: true, restartCount: 0 };

const table: readonly [what: string, known: PodStatus, wanted: PodStatus, StatusPatch | undefined][] = [
  ['nothing', { phase: 'Running' }, { phase: 'Running' }, undefined],
  ['a plain field', { phase: 'Pending' }, { phase: 'Running' }, { phase: 'Running' }],
  ['a field that is no more', { reason: 'Evicted', message: 'm' }, { message: 'm' }, { reason: null }],
  [
    'fields of others are left alone',
    { nominatedNodeName: 'n', resize: 'Proposed', conditions: [{ type: 'x', status: 'True' }] },
    {},
    undefined,
  ],
  [
    'a condition, and what it no longer says',
    { conditions: [{ ...ready, status: 'False', reason: 'r', message: 'm' }] },
    { conditions: [ready] },
    { conditions: [{ reason: null, message: null, ...ready }] },
  ],
  [
    'a new condition, and the order of all',
    { conditions: [ready] },
    { conditions: [{ type: 'Initialized', status: 'True' }, ready, { type: 'x', status: 'True' }] },
    {
      conditions: [{ reason: null, message: null, type: 'Initialized', status: 'True' }],
      '$setElementOrder/conditions': [{ type: 'Initialized' }, { type: 'Ready' }],
    },
  ],
  [
    'an own condition that is no more',
    { conditions: [{ type: 'AllContainersRestarting', status: 'False' }] },
    {},
    { conditions: [{ type: 'AllContainersRestarting', $patch: 'delete' }] },
  ],
  [
    'what the server fills in does not count',
    {
      conditions: [{ ...ready, lastProbeTime: null as unknown as string }],
      containerStatuses: [{ ...web, lastState: {}, state: { running: {} }, volumeMounts: [] }],
    },
    { conditions: [ready], containerStatuses: [{ ...web, state: {} }] },
    undefined,
  ],
  [
    'statuses of containers are one value',
    { containerStatuses: [web, { ...web, name: 'b' }] },
    { containerStatuses: [{ ...web, ready: false }] },
    { containerStatuses: [{ ...web, ready: false }] },
  ],
  [
    'addresses are replaced whole',
    { podIP: 'a', podIPs: [{ ip: 'a' }] },
    { podIP: 'b', podIPs: [{ ip: 'b' }] },
    { podIP: 'b', podIPs: [{ ip: 'b' }, { $patch: 'replace' }] },
  ],
  ['the QoS class is told only once', { qosClass: 'Burstable' }, { qosClass: 'BestEffort' }, undefined],
];

describe('the patch of a status', () => {
  for (const [what, known, wanted, patch] of table) {
    it(what, () => assert.deepEqual(statusPatch(known, wanted), patch));
  }
});
