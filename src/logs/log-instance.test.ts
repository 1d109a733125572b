import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { ContainerStatus, PodStatus } from '../kubernetes/types.ts';
import { type LogInstanceRequest, logInstance } from './log-instance.ts';

const instances = [2, 1, 0].map((attempt) => ({ id: `c${attempt}`, attempt, logPath: `/l/${attempt}.log` }));
const ended = (id?: string) => ({
  terminated: { exitCode: 1, ...(id && { containerID: `containerd://${id}` }) },
});

function attempt(status: Partial<ContainerStatus>, more: Partial<LogInstanceRequest> = {}): number {
  const shown = { name: 'main', ...status } as ContainerStatus;
  return logInstance({
    pod: 'web',
    container: 'main',
    previous: 0,
    status: { containerStatuses: [shown] },
    instances,
    ...more,
  }).attempt;
}

const running = { state: { running: {} }, containerID: 'containerd://c2', lastState: ended('c1') };

it('means the newest instance that has run', () => {
  assert.equal(attempt(running), 2);
  assert.equal(attempt({ state: ended('c2'), lastState: ended('c1') }), 2);
  assert.equal(attempt({ state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: ended('c2') }), 2);
  assert.equal(attempt({ state: ended(), lastState: ended('c1') }), 1);
});

it('means the one before it, and older ones that are kept', () => {
  assert.equal(attempt(running, { previous: 1 }), 1);
  assert.equal(attempt(running, { previous: 2 }), 0);
  const missing = { message: 'previous terminated container "main" in pod "web" not found' };
  assert.throws(() => attempt(running, { previous: 3 }), missing);
  assert.throws(() => attempt({ state: { running: {} } }, { previous: 1 }), missing);
  assert.throws(() => attempt({ state: { running: {} }, lastState: ended() }, { previous: 1 }), missing);
});

it('finds init and ephemeral containers', () => {
  for (const list of ['initContainerStatuses', 'ephemeralContainerStatuses'] as const) {
    const status = { [list]: [{ name: 'main', ...running }] } as unknown as PodStatus;
    assert.equal(attempt({}, { status }), 2);
  }
});

it('says what there is no log of, in the words of Kubernetes', () => {
  const waiting = (reason: string) => ({ state: { waiting: { reason } } });
  const words: [Partial<ContainerStatus>, string][] = [
    [waiting('ContainerCreating'), 'is waiting to start: ContainerCreating'],
    [waiting('ErrImagePull'), "is waiting to start: image can't be pulled"],
    [waiting('ImagePullBackOff'), 'is waiting to start: trying and failing to pull image'],
    [{ state: ended() }, 'is terminated'],
    [{ state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: ended() }, 'is terminated'],
    [{}, 'is waiting to start - no logs yet'],
  ];
  for (const [status, text] of words) {
    assert.throws(() => attempt(status), { message: `container "main" in pod "web" ${text}` });
  }
  assert.throws(() => attempt({}, { status: undefined }), {
    message: 'container "main" in pod "web" is not available',
  });
  assert.throws(() => attempt(running, { instances: [] }), /c2: it is gone from the runtime/);
});
