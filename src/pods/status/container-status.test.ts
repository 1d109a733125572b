import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { containerHash } from '../../kubernetes/hash.ts';
import { findContainer } from '../../kubernetes/init-containers.ts';
import type { ContainerStatus, PodSpec } from '../../kubernetes/types.ts';
import type { ObservedContainer } from '../../runtime/observed-pod.ts';
import { PodModel, testPod } from '../fixtures/pod-model.ts';
import type { PodView } from '../pod-view.ts';
import { containerStatus, timestamp } from './container-status.ts';

const at = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const seen = '2026-01-02T03:04:05Z';

function instance(
  state: ObservedContainer['state'],
  extra: Partial<ObservedContainer> = {},
): ObservedContainer {
  return {
    id: 'c0',
    name: 'web',
    sandboxId: 's',
    attempt: 0,
    state,
    createdAt: at,
    ...(state === 'Created' ? {} : { startedAt: at }),
    ...(state === 'Exited' ? { finishedAt: at, exitCode: 0 } : {}),
    image: 'web:1',
    imageId: 'sha256:1',
    hash: containerHash({ name: 'web', image: 'web:1' }),
    annotations: {},
    ...extra,
  };
}

interface Scene {
  readonly containers?: readonly ObservedContainer[];
  readonly waiting?: { reason: string; message?: string };
  readonly previous?: ContainerStatus;
  readonly spec?: Partial<PodSpec>;
  readonly view?: Partial<PodView>;
  readonly name?: string;
}

function statusOf({ containers = [], waiting, previous, spec, view, name = 'web' }: Scene): ContainerStatus {
  const model = new PodModel(testPod(spec));
  model.containers = [...containers];
  return containerStatus({
    view: { ...model.view(), ...view },
    place: findContainer(model.pod.spec, name)!,
    waiting,
    runtimeName: 'containerd',
    ...(previous && { previous }),
  });
}

describe('the state of a container', () => {
  const withInit: Partial<PodSpec> = { initContainers: [{ name: 'setup', image: 'i' }] };
  const waits: readonly [what: string, Scene, state: ContainerStatus['state']][] = [
    ['nothing made yet', {}, { waiting: { reason: 'ContainerCreating' } }],
    [
      'nothing made yet, behind init containers',
      { spec: withInit },
      { waiting: { reason: 'PodInitializing' } },
    ],
    [
      'an init container not made yet',
      { spec: withInit, name: 'setup' },
      { waiting: { reason: 'PodInitializing' } },
    ],
    ['made and not started', { containers: [instance('Created')] }, { waiting: {} }],
    ['running', { containers: [instance('Running')] }, { running: { startedAt: seen } }],
    [
      'ended well',
      { containers: [instance('Exited')] },
      {
        terminated: {
          exitCode: 0,
          reason: 'Completed',
          startedAt: seen,
          finishedAt: seen,
          containerID: 'containerd://c0',
        },
      },
    ],
    [
      'ended badly',
      { containers: [instance('Exited', { exitCode: 3 })] },
      {
        terminated: {
          exitCode: 3,
          reason: 'Error',
          startedAt: seen,
          finishedAt: seen,
          containerID: 'containerd://c0',
        },
      },
    ],
    [
      'killed for memory, in the runtime’s words',
      { containers: [instance('Exited', { exitCode: 137, reason: 'OOMKilled', message: 'oom' })] },
      {
        terminated: {
          exitCode: 137,
          reason: 'OOMKilled',
          message: 'oom',
          startedAt: seen,
          finishedAt: seen,
          containerID: 'containerd://c0',
        },
      },
    ],
    [
      'never started for good: the runtime’s reason',
      { containers: [instance('Exited', { exitCode: 128, reason: 'StartError' })] },
      {
        terminated: {
          exitCode: 128,
          reason: 'StartError',
          startedAt: seen,
          finishedAt: seen,
          containerID: 'containerd://c0',
        },
      },
    ],
    [
      'with last words of its own',
      { containers: [instance('Exited', { message: 'oom' })], view: { messages: { c0: 'goodbye' } } },
      {
        terminated: {
          exitCode: 0,
          reason: 'Completed',
          message: 'goodbye',
          startedAt: seen,
          finishedAt: seen,
          containerID: 'containerd://c0',
        },
      },
    ],
    [
      'unknown',
      { containers: [instance('Unknown')] },
      {
        terminated: {
          exitCode: 137,
          reason: 'ContainerStatusUnknown',
          message: 'The runtime does not know the state of the container',
          containerID: 'containerd://c0',
        },
      },
    ],
  ];
  for (const [what, scene, state] of waits) {
    it(what, () => assert.deepEqual(statusOf(scene).state, state));
  }

  for (const reason of [
    'CrashLoopBackOff',
    'CreateContainerConfigError',
    'CreateContainerError',
    'ErrImageNeverPull',
    'ErrImagePull',
    'ImageInspectError',
    'ImagePullBackOff',
    'InvalidImageName',
    'PostStartHookError',
    'RegistryUnavailable',
    'RunContainerError',
    'SignatureValidationFailed',
  ]) {
    it(`waiting: ${reason}, before the first instance and after its end`, () => {
      const waiting = { reason, message: 'why' };
      assert.deepEqual(statusOf({ waiting }).state, { waiting });
      const { state, lastState, restartCount } = statusOf({ waiting, containers: [instance('Exited')] });
      assert.deepEqual(state, { waiting });
      assert.equal(lastState?.terminated?.reason, 'Completed');
      assert.equal(restartCount, 0);
    });
  }

  it('is its end as long as the plan has no reason to wait', () => {
    const { state } = statusOf({ waiting: { reason: '' }, containers: [instance('Exited')] });
    assert.ok(state?.terminated);
  });
});

describe('the fields of a container’s status', () => {
  it('name the instance, its image and how often it has been made', () => {
    const older = instance('Exited', { id: 'c1', exitCode: 9, createdAt: at - 5 });
    const newest = instance('Running', {
      id: 'c2',
      attempt: 4,
      user: { uid: 5, gid: 6, supplementalGroups: [7] },
    });
    const { state: _, lastState, ...rest } = statusOf({ containers: [newest, older] });
    assert.deepEqual(rest, {
      name: 'web',
      ready: true,
      started: true,
      restartCount: 4,
      image: 'web:1',
      imageID: 'sha256:1',
      containerID: 'containerd://c2',
      user: { linux: { uid: 5, gid: 6, supplementalGroups: [7] } },
    });
    assert.equal(lastState?.terminated?.exitCode, 9);
  });

  const init = { initContainers: [{ name: 'setup', image: 'i' }] };
  const readiness: readonly [what: string, Scene, ready: boolean, started: boolean | undefined][] = [
    ['a running container without probes', { containers: [instance('Running')] }, true, true],
    ['one that has not started', { containers: [instance('Created')] }, false, false],
    ['one that has ended', { containers: [instance('Exited')] }, false, false],
    [
      'one whose startup probe has not succeeded',
      {
        containers: [instance('Running')],
        spec: { containers: [{ name: 'web', image: 'web:1', startupProbe: {} }] },
      },
      false,
      false,
    ],
    [
      'one whose startup probe has',
      {
        containers: [instance('Running')],
        spec: { containers: [{ name: 'web', image: 'web:1', startupProbe: {} }] },
        view: { health: { c0: { started: true, ready: true } } },
      },
      true,
      true,
    ],
    [
      'one whose readiness probe has not succeeded',
      {
        containers: [instance('Running')],
        spec: { containers: [{ name: 'web', image: 'web:1', readinessProbe: {} }] },
        view: { health: { c0: { started: true, ready: false } } },
      },
      false,
      true,
    ],
    [
      'one whose postStart hook still runs',
      {
        containers: [instance('Running')],
        spec: {
          containers: [
            { name: 'web', image: 'web:1', lifecycle: { postStart: { exec: { command: ['x'] } } } },
          ],
        },
      },
      false,
      false,
    ],
    [
      'an init container that succeeded',
      { containers: [instance('Exited', { name: 'setup' })], spec: init, name: 'setup' },
      true,
      false,
    ],
    [
      'an init container that failed',
      { containers: [instance('Exited', { name: 'setup', exitCode: 1 })], spec: init, name: 'setup' },
      false,
      false,
    ],
    [
      'an init container that runs',
      { containers: [instance('Running', { name: 'setup' })], spec: init, name: 'setup' },
      false,
      true,
    ],
  ];
  for (const [what, scene, ready, started] of readiness) {
    it(`ready ${ready}, started ${started}: ${what}`, () => {
      const status = statusOf(scene);
      assert.deepEqual([status.ready, status.started], [ready, started]);
    });
  }
});

describe('a container that the runtime has lost', () => {
  const running = statusOf({ containers: [instance('Running', { attempt: 2 })] });
  const unknown = {
    terminated: {
      reason: 'ContainerStatusUnknown',
      message: 'The container could not be located when the pod was terminated',
      exitCode: 137,
    },
  };

  it('has come to an unknown end, and counts as restarted', () => {
    const { state, lastState, restartCount, ready } = statusOf({ previous: running });
    assert.deepEqual(
      [state, lastState, restartCount, ready],
      [{ waiting: { reason: 'ContainerCreating' } }, unknown, 3, false],
    );
  });

  it('does not count as restarted when its pod is to end', () => {
    const intent = { kind: 'terminate', cause: 'deleted', since: at, graceSeconds: 1 } as const;
    const { state, restartCount, ready } = statusOf({ previous: running, view: { intent } });
    assert.deepEqual([state, restartCount, ready], [unknown, 2, false]);
  });

  it('keeps the end that was reported', () => {
    const ended = statusOf({ containers: [instance('Exited', { exitCode: 3 })] });
    assert.deepEqual(statusOf({ previous: ended }), ended);
  });

  it('shows why it waits, and its end before that', () => {
    const ended = statusOf({ containers: [instance('Exited', { exitCode: 3 })] });
    const waiting = { reason: 'ErrImagePull', message: 'no' };
    const { state, lastState } = statusOf({ previous: ended, waiting });
    assert.deepEqual([state, lastState], [{ waiting }, ended.state]);
  });
});

describe('times', () => {
  it('are RFC 3339 with whole seconds', () => assert.equal(timestamp(at), seen));
});
