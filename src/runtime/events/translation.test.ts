import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TaskDelete, TaskExit, TaskOOM } from '../generated/containerd-events.ts';
import { translateEnvelope } from './containerd-events.ts';

function envelope(topic: string, name: string, payload: Uint8Array) {
  const event = { typeUrl: `containerd.events.${name}`, value: Buffer.from(payload) };
  return { timestamp: undefined, namespace: 'k8s.io', topic, event };
}

describe('translateEnvelope', () => {
  const exit = (id: string) =>
    TaskExit.encode({ containerId: 'c', id, pid: 7, exitStatus: 1, exitedAt: undefined }).finish();
  const deletion = (id: string) =>
    TaskDelete.encode({ containerId: 'c', id, pid: 7, exitStatus: 1, exitedAt: undefined }).finish();

  it('tells the end of the main process only', () => {
    assert.deepEqual(translateEnvelope(envelope('/tasks/exit', 'TaskExit', exit('c'))), {
      kind: 'exited',
      id: 'c',
    });
    assert.equal(translateEnvelope(envelope('/tasks/exit', 'TaskExit', exit('exec-1'))), undefined);
  });

  it('tells the reaping of the main process only, which older versions leave unnamed', () => {
    const changed = { kind: 'changed', id: 'c' };
    assert.deepEqual(translateEnvelope(envelope('/tasks/delete', 'TaskDelete', deletion('c'))), changed);
    assert.deepEqual(translateEnvelope(envelope('/tasks/delete', 'TaskDelete', deletion(''))), changed);
    assert.equal(translateEnvelope(envelope('/tasks/delete', 'TaskDelete', deletion('exec-1'))), undefined);
  });

  it('reads the bytes that containerd sends', () => {
    // Field 1, length 3, "abc": the whole of a TaskOOM.
    const bytes = Uint8Array.from([0x0a, 3, 0x61, 0x62, 0x63]);
    assert.deepEqual(TaskOOM.encode({ containerId: 'abc' }).finish(), bytes);
    assert.deepEqual(translateEnvelope(envelope('/tasks/oom', 'TaskOOM', bytes)), { kind: 'oom', id: 'abc' });
  });

  it('passes over what it does not know, and envelopes without content', () => {
    assert.equal(
      translateEnvelope(envelope('/snapshot/commit', 'SnapshotCommit', new Uint8Array())),
      undefined,
    );
    const empty = { timestamp: undefined, namespace: '', topic: '/tasks/exit', event: undefined };
    assert.equal(translateEnvelope(empty), undefined);
  });
});
