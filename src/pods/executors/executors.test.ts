import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Limiter } from '../../concurrency/limiter.ts';
import { settle, VirtualClock } from '../../concurrency/virtual-clock.ts';
import { ContainerConfig, ExecSyncResponse, PodSandboxConfig } from '../../runtime/generated/cri.ts';
import type { ObservedContainer, ObservedPod } from '../../runtime/observed-pod.ts';
import { RuntimeCallError, RuntimeErrorCode } from '../../runtime/runtime-call-error.ts';
import { ContainerConfigError } from '../../runtime/translation/container-config-error.ts';
import { silentLogger } from '../../telemetry/logger.ts';
import { silentMetrics } from '../../telemetry/metrics.ts';
import type { Action } from '../action.ts';
import { testPod } from '../fixtures/pod-model.ts';
import { HookMetrics } from '../hooks/hook-metrics.ts';
import { emptyMemory } from '../pod-view.ts';
import { executeWith, executors } from './executors.ts';
import type { PodServices } from './pod-services.ts';

const empty = new Uint8Array();
const reason = 'because';
const container: ObservedContainer = {
  id: 'c',
  name: 'web',
  sandboxId: 's',
  attempt: 2,
  state: 'Created',
  createdAt: 1,
  image: 'web:1',
  imageId: 'sha256:1',
  hash: 'h',
  annotations: {},
};
const observed: ObservedPod = {
  uid: 'uid-1',
  name: 'web-node',
  namespace: 'default',
  sandboxes: [{ id: 's', state: 'Ready', attempt: 0, createdAt: 1, ips: ['10.0.0.1'], hostNetwork: false }],
  containers: [container],
};

function failure(code: RuntimeErrorCode, detail = 'it broke'): RuntimeCallError {
  return new RuntimeCallError({ call: 'Call', code, detail });
}

/** Everything done is noted; whatever is named in `broken` rejects. */
function scene(broken: Readonly<Record<string, Error>> = {}, shown: ObservedPod = observed, hanging = '') {
  const done: string[] = [];
  const events: string[] = [];
  const clock = new VirtualClock();
  const act =
    <T>(name: string, answer: T) =>
    async (...args: unknown[]) => {
      done.push([name, ...args.filter((arg) => typeof arg === 'string')].join(' '));
      if (broken[name]) throw broken[name];
      if (name === hanging) await new Promise(() => {});
      return answer;
    };
  const services: PodServices = {
    runtime: {
      runPodSandbox: act('RunPodSandbox', { podSandboxId: 's' }),
      stopPodSandbox: act('StopPodSandbox', {}),
      removePodSandbox: act('RemovePodSandbox', {}),
      createContainer: act('CreateContainer', { containerId: 'c' }),
      startContainer: act('StartContainer', {}),
      stopContainer: act('StopContainer', {}),
      removeContainer: act('RemoveContainer', {}),
      execSync: act('ExecSync', ExecSyncResponse.decode(empty)),
    },
    observer: {
      pod: () => shown,
      refreshContainer: act('refreshContainer', undefined),
      refreshSandbox: act('refreshSandbox', undefined),
      refreshPod: act('refreshPod', undefined),
      learnContainer: (_uid, { id, state }) => void done.push(`learnContainer ${id} ${state}`),
      removedContainer: (id) => void done.push(`removedContainer ${id}`),
      removedSandbox: (id) => void done.push(`removedSandbox ${id}`),
    },
    images: { ensure: act('ensure', { ok: true as const, imageRef: 'sha256:1' }) },
    configs: {
      runtimeHandler: async () => '',
      sandbox: act('sandboxConfig', PodSandboxConfig.decode(empty)),
      container: act('containerConfig', ContainerConfig.decode(empty)),
    },
    volumes: {
      setUp: act('setUp', []),
      tearDown: act('tearDown', undefined),
      unfinished: () => ['data', 'keys'],
    },
    cgroups: { ensurePod: act('ensurePod', undefined), removePod: act('removePod', undefined) },
    files: {
      prepare: act('prepare', { web: 3, other: 1 }),
      linkLog: act('linkLog', undefined),
      removeInstance: act('removeInstance', undefined),
      erase: act('erase', undefined),
    },
    objects: { release: act('release', undefined) },
    hookMetrics: new HookMetrics(silentMetrics),
    records: { write: act('write', undefined), remove: act('remove', undefined) },
    calls: new Limiter(4),
    events: {
      event: ({ fieldPath }, type, why, message) =>
        void events.push([type, why, message, fieldPath].filter(Boolean).join(' | ')),
    },
    clock,
    logger: silentLogger,
  };
  const run = (
    action: Action,
    { memory = emptyMemory, signal = new AbortController().signal, pod = testPod() } = {},
  ) => executeWith(services)(action, { pod, memory, observed, status: undefined, signal });
  return { done, events, clock, run };
}

const create: Action = {
  kind: 'create-container',
  container: 'web',
  attempt: 2,
  sandboxId: 's',
  imageRef: 'sha256:1',
  nextBackoffMs: 0,
  reason,
};
const start: Action = { kind: 'start-container', container: 'web', containerId: 'c', reason };
const stop: Action = {
  kind: 'stop-container',
  container: 'web',
  containerId: 'c',
  graceSeconds: 5,
  reason: 'Stopping container web',
};
const remove: Action = { kind: 'remove-container', container: 'web', containerId: 'c', reason };
const sandbox: Action = { kind: 'create-sandbox', attempt: 1, reason };
const stopSandbox: Action = { kind: 'stop-sandbox', sandboxId: 's', reason };
const removeSandbox: Action = { kind: 'remove-sandbox', sandboxId: 's', reason };

const web = 'spec.containers{web}';
const broke = 'Call failed: it broke (Unknown)';

describe('executors that succeed', () => {
  const table: readonly [action: Action, done: string[], events: string[]][] = [
    [{ kind: 'write-record', reason }, ['write'], []],
    [{ kind: 'prepare-pod', reason }, ['prepare', 'ensurePod'], []],
    [{ kind: 'set-up-volumes', reason }, ['setUp'], []],
    [{ kind: 'ensure-image', container: 'web', attempt: 0, reason }, ['ensure'], []],
    [
      sandbox,
      ['sandboxConfig', 'RunPodSandbox', 'refreshSandbox s'],
      ['Normal | SandboxChanged | Pod sandbox changed, it will be killed and re-created.'],
    ],
    [stopSandbox, ['StopPodSandbox', 'refreshSandbox s'], []],
    [removeSandbox, ['RemovePodSandbox', 'removedSandbox s'], []],
    [
      create,
      ['containerConfig', 'sandboxConfig', 'CreateContainer', 'learnContainer c Created'],
      [`Normal | Created | Container created | ${web}`],
    ],
    [
      start,
      ['linkLog web c', 'StartContainer', 'refreshContainer c'],
      [`Normal | Started | Container started | ${web}`],
    ],
    [stop, ['StopContainer', 'refreshContainer c'], [`Normal | Killing | Stopping container web | ${web}`]],
    [remove, ['RemoveContainer', 'removeInstance web c', 'removedContainer c'], []],
    [{ kind: 'tear-down', reason }, ['tearDown uid-1', 'removePod uid-1'], []],
    [{ kind: 'release-object', reason }, ['release'], []],
    [{ kind: 'erase', reason }, ['erase', 'remove uid-1'], []],
  ];
  for (const [action, done, events] of table) {
    it(`${action.kind}: ${done.join(', ')}`, async () => {
      const it_ = scene();
      const outcome = await it_.run(action);
      assert.equal(outcome.ok, true);
      assert.deepEqual(it_.done, done);
      assert.deepEqual(it_.events, events);
    });
  }

  it('cover every kind of action', () => {
    const kinds = new Set([...table.map(([action]) => action.kind), 'run-pre-stop', 'await-network']);
    assert.deepEqual(Object.keys(executors).sort(), [...kinds].sort());
  });

  it('tell which attempt follows the logs, except where the runtime knows better', async () => {
    const outcome = await scene().run({ kind: 'prepare-pod', reason });
    assert.deepEqual(outcome, { ok: true, learned: { nextAttempts: { other: 1 } } });
  });

  it('tell for which attempt an image is there', async () => {
    const outcome = await scene().run({ kind: 'ensure-image', container: 'web', attempt: 7, reason });
    assert.deepEqual(outcome, {
      ok: true,
      learned: { image: { container: 'web', ref: 'sha256:1', attempt: 7 } },
    });
  });
});

describe('executors that fail', () => {
  const unknown = failure(RuntimeErrorCode.Unknown);
  const disk = new Error('no space left on device');
  const table: readonly [action: Action, broken: string, error: Error, reason: string, events: string[]][] = [
    [{ kind: 'write-record', reason }, 'write', disk, 'RecordError', []],
    [
      { kind: 'prepare-pod', reason },
      'prepare',
      disk,
      'Failed',
      ['Warning | Failed | error making pod data directories: no space left on device'],
    ],
    [
      { kind: 'prepare-pod', reason },
      'ensurePod',
      disk,
      'FailedCreatePodContainer',
      ['Warning | FailedCreatePodContainer | unable to ensure pod container exists: no space left on device'],
    ],
    [
      { kind: 'set-up-volumes', reason },
      'setUp',
      disk,
      'FailedMount',
      ['Warning | FailedMount | no space left on device'],
    ],
    [
      { ...sandbox, attempt: 0 },
      'sandboxConfig',
      disk,
      'SandboxConfigError',
      [
        'Normal | SandboxChanged | Pod sandbox changed, it will be killed and re-created.',
        'Warning | FailedCreatePodSandBox | Failed to create pod sandbox: no space left on device',
      ],
    ],
    [
      sandbox,
      'RunPodSandbox',
      unknown,
      'FailedCreatePodSandBox',
      [
        'Normal | SandboxChanged | Pod sandbox changed, it will be killed and re-created.',
        `Warning | FailedCreatePodSandBox | Failed to create pod sandbox: ${broke}`,
      ],
    ],
    [
      stopSandbox,
      'StopPodSandbox',
      unknown,
      'FailedKillPod',
      [`Warning | FailedKillPod | error killing pod: ${broke}`],
    ],
    [removeSandbox, 'RemovePodSandbox', unknown, 'FailedRemovePodSandbox', []],
    [
      create,
      'CreateContainer',
      unknown,
      'CreateContainerError',
      [`Warning | Failed | Error: ${broke} | ${web}`],
    ],
    [
      create,
      'containerConfig',
      new ContainerConfigError('secret "x" not found'),
      'CreateContainerConfigError',
      [`Warning | Failed | Error: secret "x" not found | ${web}`],
    ],
    [start, 'StartContainer', unknown, 'RunContainerError', [`Warning | Failed | Error: ${broke} | ${web}`]],
    [
      stop,
      'StopContainer',
      unknown,
      'FailedKillPod',
      [
        `Normal | Killing | Stopping container web | ${web}`,
        `Warning | FailedKillPod | error killing pod: ${broke}`,
      ],
    ],
    [remove, 'RemoveContainer', unknown, 'FailedRemoveContainer', []],
    [remove, 'removeInstance', disk, 'FailedRemoveContainer', []],
    [{ kind: 'tear-down', reason }, 'removePod', disk, 'FailedTearDown', []],
    [{ kind: 'erase', reason }, 'erase', disk, 'FailedErase', []],
  ];
  for (const [action, broken, error, why, events] of table) {
    it(`${action.kind}, because of ${broken}: ${why}`, async () => {
      const it_ = scene({ [broken]: error });
      assert.deepEqual(await it_.run(action), { ok: false, reason: why, message: error.message });
      assert.deepEqual(it_.events, events);
    });
  }

  it('keep the record as long as files are left', async () => {
    const it_ = scene({ erase: disk });
    await it_.run({ kind: 'erase', reason });
    assert.deepEqual(it_.done, ['erase']);
  });

  it('say nothing to the user about what was cut off', async () => {
    for (const [action, call] of [
      [create, 'CreateContainer'],
      [start, 'StartContainer'],
      [stopSandbox, 'StopPodSandbox'],
      [{ kind: 'set-up-volumes', reason }, 'setUp'],
    ] as const) {
      const it_ = scene({ [call]: failure(RuntimeErrorCode.Cancelled) });
      const outcome = await it_.run(action, { signal: AbortSignal.abort(new Error('the pod is to end')) });
      assert.equal(outcome.ok, false);
      assert.deepEqual(it_.events, []);
    }
  });

  it('do not let a log that cannot be linked keep a container from starting', async () => {
    const it_ = scene({ linkLog: disk });
    assert.deepEqual(await it_.run(start), { ok: true });
  });
});

describe('looking at what was done', () => {
  const broken = failure(RuntimeErrorCode.Unavailable, 'connection refused');
  const table: readonly [action: Action, call: string, look: 'refreshContainer' | 'refreshSandbox'][] = [
    [start, 'StartContainer', 'refreshContainer'],
    [stop, 'StopContainer', 'refreshContainer'],
    [{ ...sandbox, attempt: 0 }, 'RunPodSandbox', 'refreshSandbox'],
    [stopSandbox, 'StopPodSandbox', 'refreshSandbox'],
  ];
  const nothing = { ...observed, sandboxes: [] };
  const running = { ...observed, containers: [{ ...container, state: 'Running' as const }] };
  for (const [action, call, look] of table) {
    it(`is done again when it fails, and ${action.kind} has succeeded all the same`, async () => {
      const troubles: Record<string, Error> = { [look]: broken };
      const it_ = scene(
        troubles,
        action.kind === 'create-sandbox' ? nothing : action === stop ? running : observed,
      );
      const outcome = it_.run(action);
      await settle();
      await it_.clock.advance(1000);
      await settle();
      const looks = () => it_.done.filter((done) => done.startsWith(look)).length;
      assert.equal(looks(), 2);
      delete troubles[look];
      await it_.clock.advance(2000);
      assert.deepEqual(await outcome, { ok: true });
      assert.equal(looks(), 3);
      assert.equal(it_.done.filter((done) => done === call).length, 1);
      assert.deepEqual(
        it_.events.filter((event) => event.startsWith('Warning')),
        [],
      );
      assert.equal(it_.clock.nextTimer(), undefined);
    });
  }

  it('ends when an event has told meanwhile, or nobody needs it any more', async () => {
    const told = scene({ refreshContainer: broken }, running);
    assert.deepEqual(await told.run(start), { ok: true });
    const cut = scene({ refreshContainer: broken });
    const abort = new AbortController();
    const outcome = cut.run(start, { signal: abort.signal });
    await settle();
    abort.abort(new Error('the pod is to end'));
    assert.deepEqual(await outcome, { ok: true });
    assert.equal(cut.clock.nextTimer(), undefined);
  });
});

describe('waiting for the network', () => {
  it('is told at every attempt', async () => {
    const it_ = scene();
    const outcome = await it_.run({ kind: 'await-network', problem: 'no CNI', reason });
    const message = 'network is not ready: no CNI';
    assert.deepEqual(outcome, { ok: false, reason: 'NetworkNotReady', message });
    assert.deepEqual(it_.events, [`Warning | NetworkNotReady | ${message}`]);
  });
});

describe('executors that meet nothing', () => {
  const notFound = failure(RuntimeErrorCode.NotFound);
  const table: readonly [action: Action, call: string, done: string[]][] = [
    [stop, 'StopContainer', ['StopContainer', 'removedContainer c']],
    [stopSandbox, 'StopPodSandbox', ['StopPodSandbox', 'removedSandbox s']],
    [removeSandbox, 'RemovePodSandbox', ['RemovePodSandbox', 'removedSandbox s']],
    [remove, 'RemoveContainer', ['RemoveContainer', 'removeInstance web c', 'removedContainer c']],
  ];
  for (const [action, call, done] of table) {
    it(`take it for done: ${action.kind}`, async () => {
      const it_ = scene({ [call]: notFound });
      assert.deepEqual(await it_.run(action), { ok: true });
      assert.deepEqual(it_.done, done);
    });
  }
});

describe('executors whose answer is lost', () => {
  const lost = failure(RuntimeErrorCode.Unavailable);

  for (const [action, call] of [
    [sandbox, 'RunPodSandbox'],
    [create, 'CreateContainer'],
  ] as const) {
    it(`look whether the work was done: ${action.kind}`, async () => {
      const it_ = scene({ [call]: lost });
      assert.equal((await it_.run(action)).ok, false);
      assert.equal(it_.done.at(-1), 'refreshPod uid-1');
    });
  }

  it('take a container that runs for started', async () => {
    const running = { ...observed, containers: [{ ...container, state: 'Running' as const }] };
    const it_ = scene({ StartContainer: lost }, running);
    assert.deepEqual(await it_.run(start), { ok: true });
    assert.deepEqual(it_.events, [`Normal | Started | Container started | ${web}`]);
  });
});

describe('the hook around every step', () => {
  it('is called before and after, and can hold the step back', async () => {
    const steps: string[] = [];
    let go = () => {};
    const held = new Promise<void>((resolve) => (go = resolve));
    const execute = executeWith(
      {
        ...({} as PodServices),
        records: { write: async () => void steps.push('write'), remove: async () => {} },
      },
      async (moment, { kind }) => {
        steps.push(`${moment} ${kind}`);
        if (moment === 'before') await held;
      },
    );
    const outcome = execute(
      { kind: 'write-record', reason },
      {
        pod: testPod(),
        memory: { ...emptyMemory, startTime: 1 },
        observed,
        status: undefined,
        signal: new AbortController().signal,
      },
    );
    assert.deepEqual(steps, ['before write-record']);
    go();
    assert.deepEqual(await outcome, { ok: true });
    assert.deepEqual(steps, ['before write-record', 'write', 'after write-record']);
  });
});

describe('volumes that take long', () => {
  it('are told by name after as long as in Kubernetes, once', async () => {
    const slow = scene({}, observed, 'setUp');
    void slow.run({ kind: 'set-up-volumes', reason });
    await slow.clock.advance(122_000);
    assert.deepEqual(slow.events, []);
    await slow.clock.advance(600_000);
    assert.deepEqual(slow.events, [
      'Warning | FailedMount | Unable to attach or mount volumes: unmounted volumes=[data keys], ' +
        'unattached volumes=[], failed to process volumes=[]: context deadline exceeded',
    ]);
    const quick = scene();
    await quick.run({ kind: 'set-up-volumes', reason });
    assert.equal(quick.clock.nextTimer(), undefined);
  });
});
