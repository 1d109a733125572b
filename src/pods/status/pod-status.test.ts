/** Phases and conditions of a pod through its life, by table. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PodCondition, PodSpec, PodStatus } from '../../kubernetes/types.ts';
import { decide } from '../decide.ts';
import { PodModel, testPod } from '../fixtures/pod-model.ts';
import { podStatus } from './pod-status.ts';

function statusOf(model: PodModel, previous?: PodStatus, hostIps: readonly string[] = []): PodStatus {
  return podStatus({ view: model.view(), plan: model.plan(), previous, runtimeName: 'containerd', hostIps });
}

/** `Ready=False ContainersNotReady containers with …`, without times. */
function told(status: PodStatus): Record<string, string> {
  return Object.fromEntries(
    (status.conditions ?? []).map(({ type, status: value, reason, message }) => [
      type,
      [value, reason, message].filter(Boolean).join(' '),
    ]),
  );
}

function settled(spec: Partial<PodSpec> = {}): PodModel {
  const model = new PodModel(testPod(spec));
  model.settle();
  return model;
}

const setup = { initContainers: [{ name: 'setup', image: 'i' }] };
const proxy = { initContainers: [{ name: 'proxy', image: 'p', restartPolicy: 'Always', startupProbe: {} }] };
const two = {
  containers: [
    { name: 'a', image: 'i' },
    { name: 'b', image: 'i' },
  ],
};

describe('the phase of a pod', () => {
  const table: readonly [what: string, () => PodModel, phase: string][] = [
    ['nothing made yet', () => new PodModel(), 'Pending'],
    ['running', () => settled(), 'Running'],
    ['an init container runs', () => settled(setup), 'Pending'],
    [
      'an init container has failed and may try again',
      () => {
        const model = settled(setup);
        model.exit('setup', 1);
        return model;
      },
      'Pending',
    ],
    ['a sidecar has not started', () => settled(proxy), 'Pending'],
    [
      'one of two has never run',
      () => {
        const model = new PodModel(testPod(two));
        model.fails = (action) =>
          action.kind === 'ensure-image' && action.container === 'b'
            ? { ok: false, reason: 'ErrImagePull', message: 'no' }
            : undefined;
        model.settle();
        return model;
      },
      'Pending',
    ],
    [
      'one of two has ended for good',
      () => {
        const model = settled({ ...two, restartPolicy: 'Never' });
        model.exit('a', 0);
        return model;
      },
      'Running',
    ],
    [
      'between two tries',
      () => {
        const model = settled();
        for (let i = 0; i < 2; i++) {
          model.exit('web', 1);
          model.settle();
        }
        return model;
      },
      'Running',
    ],
    [
      'all ended well',
      () => {
        const model = settled({ restartPolicy: 'Never' });
        model.exit('web', 0);
        model.settle();
        return model;
      },
      'Succeeded',
    ],
    [
      'ended badly',
      () => {
        const model = settled({ restartPolicy: 'Never' });
        model.exit('web', 1);
        model.settle();
        return model;
      },
      'Failed',
    ],
    [
      'the time is up, and a container still stops',
      () => {
        const model = settled({ activeDeadlineSeconds: 1 });
        model.now += 2000;
        model.step();
        return model;
      },
      'Running',
    ],
    [
      'an init container has failed for good, and a sidecar still stops',
      () => {
        const model = settled({
          restartPolicy: 'Never',
          initContainers: [{ name: 'proxy', image: 'p', restartPolicy: 'Always' }, ...setup.initContainers],
        });
        model.exit('setup', 1);
        model.step();
        return model;
      },
      'Pending',
    ],
  ];
  for (const [what, make, phase] of table) {
    it(`${phase}: ${what}`, () => assert.equal(statusOf(make()).phase, phase));
  }

  it('names the deadline once the last container has stopped', () => {
    const model = settled({ activeDeadlineSeconds: 1 });
    model.now += 2000;
    model.settle();
    const { phase, reason, message } = statusOf(model);
    assert.deepEqual(
      [phase, reason, message],
      ['Failed', 'DeadlineExceeded', 'Pod was active on the node longer than the specified deadline'],
    );
  });
});

describe('the conditions of a pod', () => {
  const unready = (name: string) => `False ContainersNotReady containers with unready status: [${name}]`;

  it('nothing made yet', () => {
    assert.deepEqual(told(statusOf(new PodModel())), {
      PodReadyToStartContainers: 'False',
      Initialized: 'True',
      Ready: unready('web'),
      ContainersReady: unready('web'),
      PodScheduled: 'True',
    });
  });

  it('initialising', () => {
    const conditions = told(statusOf(settled({ ...setup, ...two })));
    assert.equal(
      conditions['Initialized'],
      'False ContainersNotInitialized containers with incomplete status: [setup]',
    );
    assert.equal(conditions['Ready'], unready('a b'));
    assert.equal(conditions['PodReadyToStartContainers'], 'True');
  });

  it('a sidecar that has not started', () => {
    const conditions = told(statusOf(settled(proxy)));
    assert.equal(
      conditions['Initialized'],
      'False ContainersNotInitialized containers with incomplete status: [proxy]',
    );
    assert.equal(conditions['ContainersReady'], unready('proxy web'));
  });

  it('running', () => {
    assert.deepEqual(told(statusOf(settled())), {
      PodReadyToStartContainers: 'True',
      Initialized: 'True',
      Ready: 'True',
      ContainersReady: 'True',
      PodScheduled: 'True',
    });
  });

  for (const [code, phase, reason, isInitialized] of [
    [0, 'Succeeded', 'PodCompleted', 'True PodCompleted'],
    [1, 'Failed', 'PodFailed', 'True'],
  ] as const) {
    it(phase, () => {
      const model = settled({ restartPolicy: 'Never' });
      model.exit('web', code);
      model.settle();
      assert.deepEqual(told(statusOf(model)), {
        PodReadyToStartContainers: 'False',
        Initialized: isInitialized,
        Ready: `False ${reason}`,
        ContainersReady: `False ${reason}`,
        PodScheduled: 'True',
      });
    });
  }

  it('a pod whose readiness gates are closed', () => {
    const model = settled({
      readinessGates: [{ conditionType: 'example.com/a' }, { conditionType: 'example.com/b' }],
    });
    const foreign: PodCondition = { type: 'example.com/a', status: 'False' };
    const status = statusOf(model, { conditions: [foreign] });
    assert.equal(
      told(status)['Ready'],
      'False ReadinessGatesNotReady the status of pod readiness gate "example.com/a" is not "True", but False, ' +
        'corresponding condition of pod readiness gate "example.com/b" does not exist.',
    );
    assert.ok(status.conditions?.includes(foreign), 'conditions of others stay');
    const open = ['a', 'b'].map((name) => ({ type: `example.com/${name}`, status: 'True' }));
    assert.equal(told(statusOf(model, { conditions: open }))['Ready'], 'True');
  });

  it('keep the time of their last change', () => {
    const model = new PodModel();
    const first = statusOf(model);
    model.now += 5000;
    model.settle();
    const second = statusOf(model, first);
    const changed = second.conditions?.filter(
      ({ lastTransitionTime }, i) => lastTransitionTime !== first.conditions?.[i]?.lastTransitionTime,
    );
    assert.deepEqual(
      changed?.map(({ type }) => type),
      ['PodReadyToStartContainers', 'Ready', 'ContainersReady'],
    );
    model.now += 5000;
    assert.deepEqual(statusOf(model, second).conditions, second.conditions);
  });

  it('tell the generation they were observed at', () => {
    const model = settled();
    model.pod = { ...model.pod, metadata: { ...model.pod.metadata, generation: 7 } };
    const status = statusOf(model);
    assert.equal(status.observedGeneration, 7);
    assert.ok(status.conditions?.every(({ observedGeneration }) => observedGeneration === 7));
  });
});

describe('the other fields of a pod’s status', () => {
  it('list init containers in their order and main containers by name', () => {
    const status = statusOf(
      settled({
        initContainers: [
          { name: 'z', image: 'i', restartPolicy: 'Always' },
          { name: 'y', image: 'i' },
        ],
        containers: [
          { name: 'b', image: 'i' },
          { name: 'a', image: 'i' },
        ],
        ephemeralContainers: [{ name: 'debug', image: 'i' }],
      }),
    );
    const names = (list: PodStatus['containerStatuses']) => list?.map(({ name }) => name);
    assert.deepEqual(names(status.initContainerStatuses), ['z', 'y']);
    assert.deepEqual(names(status.containerStatuses), ['a', 'b']);
    assert.deepEqual(names(status.ephemeralContainerStatuses), ['debug']);
  });

  const addresses: readonly [sandbox: string[], host: string[], told: string[]][] = [
    [['10.0.0.1'], [], ['10.0.0.1']],
    [['10.0.0.1', 'fd00::1'], ['192.0.2.1'], ['10.0.0.1', 'fd00::1']],
    [['10.0.0.1', 'fd00::1'], ['2001:db8::1'], ['fd00::1', '10.0.0.1']],
    [['10.0.0.1', '10.0.0.2', 'fd00::1', 'fd00::2'], ['192.0.2.1'], ['10.0.0.1', 'fd00::1']],
  ];
  for (const [ips, hostIps, wanted] of addresses) {
    it(`tell one address of each family, the node’s first: ${ips.join()} on ${hostIps.join()}`, () => {
      const model = settled();
      model.sandboxes = model.sandboxes.map((sandbox) => ({ ...sandbox, ips }));
      const { podIP, podIPs } = statusOf(model, undefined, hostIps);
      assert.equal(podIP, wanted[0]);
      assert.deepEqual(
        podIPs?.map(({ ip }) => ip),
        wanted,
      );
    });
  }

  it('tell the node’s addresses for a pod on its network', () => {
    const { podIP, hostIP } = statusOf(settled({ hostNetwork: true }), undefined, ['192.0.2.1']);
    assert.deepEqual([podIP, hostIP], ['192.0.2.1', '192.0.2.1']);
  });

  it('keep the addresses of a pod whose sandbox is gone', () => {
    const model = settled();
    const before = statusOf(model);
    model.loseAll();
    assert.equal(statusOf(model, before).podIP, '10.0.0.2');
  });
});

describe('a pod that waits for its volumes', () => {
  it('names them in its condition and in what its containers wait for', () => {
    const view = new PodModel(testPod()).view();
    const message = 'MountVolume.SetUp failed for volume "keys" : secret "keys" not found';
    const failures = {
      'set-up-volumes:volumes': { reason: 'FailedMount', message, count: 1, retryAt: view.now },
    };
    const waiting = { ...view, memory: { ...view.memory, prepared: true, failures } };
    const status = podStatus({
      view: waiting,
      plan: decide(waiting),
      previous: undefined,
      runtimeName: 'containerd',
      hostIps: [],
    });
    assert.equal(told(status)['PodReadyToStartContainers'], `False FailedMount ${message}`);
    assert.deepEqual(status.containerStatuses?.[0]?.state, {
      waiting: { reason: 'ContainerCreating', message },
    });
  });
});
