import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type PodListView, progressLines, readProgress } from './pod-progress.ts';

function list(ready: string, reason?: string): PodListView {
  const state = reason === undefined ? {} : { waiting: { reason, message: 'not there' } };
  return {
    items: [
      {
        metadata: { name: 'web-node', namespace: 'default', uid: 'u1' },
        status: {
          phase: 'Pending',
          podIP: '10.0.0.2',
          conditions: [{ type: 'Ready', status: ready }],
          containerStatuses: [{ name: 'httpd', state }],
        },
      },
    ],
  };
}

const none = new Map();

test('a pod is told once when it becomes ready', () => {
  const ready = readProgress(list('True'));
  assert.deepEqual(progressLines(none, readProgress(list('False'))), []);
  assert.deepEqual(progressLines(none, ready), ['pod default/web-node is ready at 10.0.0.2']);
  assert.deepEqual(progressLines(ready, ready), []);
});

test('a pod that is no longer ready is told with what its containers wait for', () => {
  assert.deepEqual(progressLines(readProgress(list('True')), readProgress(list('False', 'ErrImagePull'))), [
    'pod default/web-node is no longer ready: httpd: ErrImagePull (not there)',
  ]);
});

test('a pod that went away is told, one without status counts as pending', () => {
  assert.deepEqual(progressLines(readProgress(list('True')), none), ['pod default/web-node is gone']);
  const [pod] = readProgress({ items: [{ metadata: { name: 'x' } }] }).values();
  assert.deepEqual(pod, { name: 'default/x', ready: false, address: '', waiting: 'Pending' });
});
