import assert from 'node:assert/strict';
import { it } from 'node:test';
import { volumeMountStatuses } from './volume-mount-statuses.ts';

const mount = { name: 'data', mountPath: '/data' };

for (const [what, more, supported, expected] of [
  ['of a writable mount', {}, true, {}],
  ['of a read-only mount', { readOnly: true }, true, { readOnly: true, recursiveReadOnly: 'Disabled' }],
  [
    'with recursiveReadOnly Disabled',
    { readOnly: true, recursiveReadOnly: 'Disabled' },
    true,
    { readOnly: true, recursiveReadOnly: 'Disabled' },
  ],
  [
    'with IfPossible on a runtime that can',
    { readOnly: true, recursiveReadOnly: 'IfPossible' },
    true,
    { readOnly: true, recursiveReadOnly: 'Enabled' },
  ],
  [
    'with IfPossible on a runtime that cannot',
    { readOnly: true, recursiveReadOnly: 'IfPossible' },
    false,
    { readOnly: true, recursiveReadOnly: 'Disabled' },
  ],
  [
    'with Enabled',
    { readOnly: true, recursiveReadOnly: 'Enabled' },
    true,
    { readOnly: true, recursiveReadOnly: 'Enabled' },
  ],
] as const) {
  it(`the status ${what} is as Kubernetes tells it`, () => {
    assert.deepEqual(volumeMountStatuses({ volumeMounts: [{ ...mount, ...more }] }, supported), [
      { ...mount, ...expected },
    ]);
  });
}
