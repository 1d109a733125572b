/** In which order the containers of a pod start, run and restart. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod } from '../../../src/kubernetes/types.ts';
import { recorded, recording, sidecar, type Timeline } from './recorder.ts';
import { containerOf, reasonOf, Scenarios } from './scenarios.ts';

const scenarios = new Scenarios();
const { agent } = scenarios;

/** An image that no registry has, which a pull notices at once. */
const missingImage = 'localhost:1/kubelet-ts/missing:1';

const waitsForImage = (pod: Pod, container: string) =>
  /^(?:ErrImagePull|ImagePullBackOff)$/.test(reasonOf(pod, container) ?? '');

const ended = (timeline: Timeline, container: string) => timeline.at(`${container} ended`);

describe('init containers and regular containers', () => {
  scenarios.recorded('serial', {
    restartPolicy: 'Never',
    initContainers: ['init-1', 'init-2', 'init-3'].map((name) => recorded(name, { runsFor: 0.3 })),
    containers: [recorded('main', { runsFor: 0.1 })],
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle Running a pod with init containers and regular containers, restartPolicy=Never A pod initializes successfully should launch init container serially before a regular container', async () => {
    await scenarios.phase('serial', 'Succeeded');
    const order = ['init-1', 'init-2', 'init-3', 'main'];
    scenarios
      .timeline('serial')
      .inOrder(...order.flatMap((name) => [`${name} starting`, `${name} started`, `${name} ended`]));
  });

  scenarios.recorded('init-fails', {
    restartPolicy: 'Never',
    initContainers: [recorded('init-1', { runsFor: 0.1, code: 1 }), recorded('init-2', { runsFor: 0.1 })],
    containers: [recorded('main')],
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle Running a pod with init containers and regular containers, restartPolicy=Never an init container fails should not launch regular containers if an init container fails', async () => {
    const pod = await scenarios.phase('init-fails', 'Failed');
    assert.equal(containerOf(pod, 'init-1')?.state?.terminated?.exitCode, 1);
    for (const name of ['init-2', 'main']) scenarios.timeline('init-fails').never(`${name} starting`);
  });

  scenarios.recorded('hook-after-init', {
    restartPolicy: 'Never',
    initContainers: [recorded('init', { startsFor: 0.5, runsFor: 0.5 })],
    containers: [
      recorded(
        'main',
        { runsFor: 15 },
        { lifecycle: { postStart: recording('main', 'say hook; sleep 1; say hooked') } },
      ),
    ],
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle Running a pod with init containers and regular containers, restartPolicy=Never The regular container has a PostStart hook should run Init container to completion before call to PostStart of regular container', async () => {
    await scenarios.phase('hook-after-init', 'Succeeded');
    const timeline = scenarios.timeline('hook-after-init');
    timeline.inOrder('init starting', 'init ended', 'main starting', 'main ended');
    timeline.inOrder('init ended', 'main hook', 'main hooked');
  });

  scenarios.recorded('hook-holds-back', {
    restartPolicy: 'Never',
    containers: [
      recorded('one', { runsFor: 15 }, { lifecycle: { postStart: recording('one', 'sleep 2; say hooked') } }),
      recorded('two', { runsFor: 0.1 }),
    ],
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle Running a pod with init containers and regular containers, restartPolicy=Never Running a pod with multiple containers and a PostStart hook should not launch second container before PostStart of the first container completed', async () => {
    await scenarios.phase('hook-holds-back', 'Succeeded');
    scenarios.timeline('hook-holds-back').inOrder('one starting', 'one hooked', 'two starting');
  });

  scenarios.recorded('fails-again', {
    restartPolicy: 'Always',
    containers: [recorded('main', { runsFor: 0.1, code: 1 })],
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle Running a pod with init containers and regular containers, restartPolicy=Never running a Pod with a failed regular container should restart failing container when pod restartPolicy is Always', async () => {
    const timeline = await scenarios.untilRecorded(
      'fails-again',
      'restarted twice',
      (seen) => seen.times('main started') > 2,
    );
    timeline.inOrder('main starting', 'main ended');
    await agent.until(
      'fails-again',
      'counted',
      (pod) => (containerOf(pod, 'main')?.restartCount ?? 0) >= 2 && pod.status?.phase === 'Running',
    );
  });

  scenarios.recorded('init-once', {
    restartPolicy: 'Always',
    initContainers: [recorded('init', { runsFor: 0.1 })],
    containers: [recorded('main', { runsFor: 0.2, code: 1 })],
  });
  it("[sig-node] [NodeConformance] Containers Lifecycle Running a pod with init containers and regular containers, restartPolicy=Never A regular container restarts with init containers shouldn't restart init containers upon regular container restart", async () => {
    const timeline = await scenarios.untilRecorded(
      'init-once',
      'restarted',
      (seen) => seen.times('main started') > 2,
    );
    assert.equal(timeline.times('init starting'), 1);
  });

  scenarios.recorded('bad-init', {
    restartPolicy: 'Never',
    initContainers: [recorded('init', {}, { image: missingImage })],
    containers: [recorded('main', { runsFor: 0.1 })],
  });
  // As long as its image may still come, the pod has not failed: it is pending, and its container tells why.
  it('[sig-node] [NodeConformance] Containers Lifecycle Running a pod with init containers and regular containers, restartPolicy=Never have init container in a Pod with restartPolicy=Never an init container fails to start because of a bad image should mark a Pod as failed and produce log', async () => {
    const pod = await agent.until('bad-init', 'without its image', (seen) => waitsForImage(seen, 'init'));
    assert.equal(pod.status?.phase, 'Pending');
    assert.match(containerOf(pod, 'init')?.state?.waiting?.message ?? '', /kubelet-ts\/missing/);
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle Running a pod with init containers and regular containers, restartPolicy=Never have init container in a Pod with restartPolicy=Never an init container fails to start because of a bad image should not start an init container', async () => {
    const pod = await agent.until('bad-init', 'without its image', (seen) => waitsForImage(seen, 'init'));
    assert.equal(containerOf(pod, 'init')?.containerID, undefined);
    scenarios.timeline('bad-init').never('init starting');
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle Running a pod with init containers and regular containers, restartPolicy=Never have init container in a Pod with restartPolicy=Never an init container fails to start because of a bad image should not start a regular container', async () => {
    const pod = await agent.until('bad-init', 'without its image', (seen) => waitsForImage(seen, 'init'));
    assert.equal(reasonOf(pod, 'main'), 'PodInitializing');
    scenarios.timeline('bad-init').never('main starting');
  });
});

describe('three init containers and two sidecars', () => {
  scenarios.recorded('mixed', {
    restartPolicy: 'Never',
    initContainers: [
      recorded('init-1', { runsFor: 0.3 }),
      sidecar('sidecar-1'),
      recorded('init-2', { runsFor: 0.3 }),
      sidecar('sidecar-2'),
      recorded('init-3', { runsFor: 0.3 }),
    ],
    containers: [recorded('main', { runsFor: 0.5 })],
  });
  const mixed = async (check: (timeline: Timeline, pod: Pod) => void) => {
    const pod = await scenarios.phase('mixed', 'Succeeded');
    check(scenarios.timeline('mixed'), pod);
  };

  it('[sig-node] [NodeConformance] Containers Lifecycle using a Pod with restartPolicy=Never, three init container and two restartable init containers should finish and produce log', () =>
    mixed((timeline, pod) => {
      assert.equal(containerOf(pod, 'main')?.state?.terminated?.exitCode, 0);
      for (const name of ['init-1', 'init-2', 'init-3', 'sidecar-1', 'sidecar-2', 'main'])
        assert.equal(timeline.times(`${name} ended`), 1);
    }));
  it('[sig-node] [NodeConformance] Containers Lifecycle using a Pod with restartPolicy=Never, three init container and two restartable init containers should run the first init container to completion before starting first restartable init container', () =>
    mixed((timeline) => timeline.inOrder('init-1 ended', 'sidecar-1 starting')));
  it('[sig-node] [NodeConformance] Containers Lifecycle using a Pod with restartPolicy=Never, three init container and two restartable init containers should run first init container and first restartable init container together', () =>
    // The first init container behind the first sidecar, since the one before it has ended by then.
    mixed((timeline) => timeline.together('init-2', 'sidecar-1')));
  it('[sig-node] [NodeConformance] Containers Lifecycle using a Pod with restartPolicy=Never, three init container and two restartable init containers should run second init container to completion before starting second restartable init container', () =>
    mixed((timeline) => timeline.inOrder('init-2 ended', 'sidecar-2 starting')));
  it('[sig-node] [NodeConformance] Containers Lifecycle using a Pod with restartPolicy=Never, three init container and two restartable init containers should start second restartable init container before third init container', () =>
    mixed((timeline) => timeline.inOrder('sidecar-2 starting', 'init-3 starting')));
  it('[sig-node] [NodeConformance] Containers Lifecycle using a Pod with restartPolicy=Never, three init container and two restartable init containers should run both restartable init containers and third init container together', () =>
    mixed((timeline) => {
      for (const name of ['sidecar-1', 'sidecar-2']) timeline.together(name, 'init-3');
    }));
  it('[sig-node] [NodeConformance] Containers Lifecycle using a Pod with restartPolicy=Never, three init container and two restartable init containers should run third init container to completion before starting regular container', () =>
    mixed((timeline) => timeline.inOrder('init-3 ended', 'main starting')));
  it('[sig-node] [NodeConformance] Containers Lifecycle using a Pod with restartPolicy=Never, three init container and two restartable init containers should run both restartable init containers and a regular container together', () =>
    mixed((timeline) => {
      timeline.together('sidecar-1', 'sidecar-2');
      for (const name of ['sidecar-1', 'sidecar-2']) timeline.together(name, 'main');
    }));
});

describe('an init container behind a sidecar', () => {
  for (const [policy, title] of [
    [
      'Always',
      '[sig-node] [NodeConformance] Containers Lifecycle initializing an init container after a restartable init container Should begin initializing the pod, restartPolicy=Always',
    ],
    [
      'OnFailure',
      '[sig-node] [NodeConformance] Containers Lifecycle initializing an init container after a restartable init container Should begin initializing the pod, restartPolicy=OnFailure',
    ],
    [
      'Never',
      '[sig-node] [NodeConformance] Containers Lifecycle initializing an init container after a restartable init container Should begin initializing the pod, restartPolicy=Never',
    ],
  ] as const) {
    const name = scenarios.recorded(`begins-${policy.toLowerCase()}`, {
      restartPolicy: policy,
      initContainers: [sidecar('sidecar', { startsFor: 0.5 }), recorded('init')],
      containers: [recorded('main')],
    });
    it(title, async () => {
      const pod = await agent.until(name, 'initializing', (seen) =>
        Boolean(containerOf(seen, 'init')?.state?.running),
      );
      assert.equal(pod.status?.phase, 'Pending');
      assert.ok(containerOf(pod, 'sidecar')?.state?.running);
      const timeline = await scenarios.untilRecorded(name, 'init started', (seen) =>
        seen.has('init started'),
      );
      timeline.inOrder('sidecar starting', 'init starting');
      timeline.never('main starting');
    });
  }
});

/** The same pods and expectations under every restart policy of the pod; titles are the field's. */
interface PolicyTitles {
  readonly badImage: { marked: string; regular: string; sidecar: string };
  readonly continuous: { done: string; once: string; regular: string };
  readonly exits: Readonly<Record<0 | 1, { done: string; before: string; after: string; regular: string }>>;
}

const titlesOf = {
  Always: {
    badImage: {
      marked:
        '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Always a restartable init container fails to start because of a bad image should continuously run Pod keeping it Pending and produce log',
      regular:
        '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Always a restartable init container fails to start because of a bad image should not start a regular container',
      sidecar:
        '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Always a restartable init container fails to start because of a bad image should not start a restartable init container',
    },
    continuous: {
      done: '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Always a restartable init container runs continuously should keep running a Pod continuously and produce log',
      once: '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Always a restartable init container runs continuously should not restart a restartable init container',
      regular:
        '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Always a restartable init container runs continuously should start a regular container',
    },
    exits: {
      0: {
        done: '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Always a restartable init container starts and exits with exit code 0 continuously should keep running a Pod continuously and produce log',
        before:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Always a restartable init container starts and exits with exit code 0 continuously should restart a restartable init container before the regular container started',
        after:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Always a restartable init container starts and exits with exit code 0 continuously should restart a restartable init container after the regular container started',
        regular:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Always a restartable init container starts and exits with exit code 0 continuously should start a regular container',
      },
      1: {
        done: '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Always a restartable init container starts and exits with exit code 1 continuously should keep running a Pod continuously and produce log',
        before:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Always a restartable init container starts and exits with exit code 1 continuously should restart a restartable init container before the regular container started',
        after:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Always a restartable init container starts and exits with exit code 1 continuously should restart a restartable init container after the regular container started',
        regular:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Always a restartable init container starts and exits with exit code 1 continuously should start a regular container',
      },
    },
  },
  OnFailure: {
    badImage: {
      marked:
        '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=OnFailure a restartable init container fails to start because of a bad image should mark a Pod as failed and produce log',
      regular:
        '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=OnFailure a restartable init container fails to start because of a bad image should not start a regular container',
      sidecar:
        '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=OnFailure a restartable init container fails to start because of a bad image should not start a restartable init container',
    },
    continuous: {
      done: '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=OnFailure a restartable init container runs continuously should complete a Pod successfully and produce log',
      once: '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=OnFailure a restartable init container runs continuously should not restart a restartable init container',
      regular:
        '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=OnFailure a restartable init container runs continuously should run a regular container to completion',
    },
    exits: {
      0: {
        done: '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=OnFailure a restartable init container starts and exits with exit code 0 continuously should complete a Pod successfully and produce log',
        before:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=OnFailure a restartable init container starts and exits with exit code 0 continuously should restart a restartable init container before the regular container started',
        after:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=OnFailure a restartable init container starts and exits with exit code 0 continuously should restart a restartable init container after the regular container started',
        regular:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=OnFailure a restartable init container starts and exits with exit code 0 continuously should run a regular container to completion',
      },
      1: {
        done: '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=OnFailure a restartable init container starts and exits with exit code 1 continuously should complete a Pod successfully and produce log',
        before:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=OnFailure a restartable init container starts and exits with exit code 1 continuously should restart a restartable init container before the regular container started',
        after:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=OnFailure a restartable init container starts and exits with exit code 1 continuously should restart a restartable init container after the regular container started',
        regular:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=OnFailure a restartable init container starts and exits with exit code 1 continuously should run a regular container to completion',
      },
    },
  },
  Never: {
    badImage: {
      marked:
        '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Never a restartable init container fails to start because of a bad image should mark a Pod as failed and produce log',
      regular:
        '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Never a restartable init container fails to start because of a bad image should not start a regular container',
      sidecar:
        '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Never a restartable init container fails to start because of a bad image should not start a restartable init container',
    },
    continuous: {
      done: '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Never a restartable init container runs continuously should complete a Pod successfully and produce log',
      once: '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Never a restartable init container runs continuously should not restart a restartable init container',
      regular:
        '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Never a restartable init container runs continuously should run a regular container to completion',
    },
    exits: {
      0: {
        done: '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Never a restartable init container starts and exits with exit code 0 continuously should complete a Pod successfully and produce log',
        before:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Never a restartable init container starts and exits with exit code 0 continuously should restart a restartable init container before the regular container started',
        after:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Never a restartable init container starts and exits with exit code 0 continuously should restart a restartable init container after the regular container started',
        regular:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Never a restartable init container starts and exits with exit code 0 continuously should run a regular container to completion',
      },
      1: {
        done: '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Never a restartable init container starts and exits with exit code 1 continuously should complete a Pod successfully and produce log',
        before:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Never a restartable init container starts and exits with exit code 1 continuously should restart a restartable init container before the regular container started',
        after:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Never a restartable init container starts and exits with exit code 1 continuously should restart a restartable init container after the regular container started',
        regular:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Never a restartable init container starts and exits with exit code 1 continuously should run a regular container to completion',
      },
    },
  },
} satisfies Record<string, PolicyTitles>;

for (const policy of ['Always', 'OnFailure', 'Never'] as const) {
  const titles: PolicyTitles = titlesOf[policy];
  const named = (name: string) => `${name}-${policy.toLowerCase()}`;
  const isOver = (pod: Pod) =>
    pod.status?.phase === (policy === 'Always' ? 'Running' : 'Succeeded') &&
    (policy !== 'Always' || (containerOf(pod, 'main')?.restartCount ?? 0) > 0);

  describe(`a sidecar in a pod with restartPolicy ${policy}`, () => {
    const badImage = scenarios.recorded(named('bad-sidecar'), {
      restartPolicy: policy,
      initContainers: [sidecar('sidecar', {}, { image: missingImage })],
      containers: [recorded('main', { runsFor: 0.1 })],
    });
    const imageless = () =>
      agent.until(badImage, 'without its image', (seen) => waitsForImage(seen, 'sidecar'));
    it(titles.badImage.marked, async () => {
      const pod = await imageless();
      assert.equal(pod.status?.phase, 'Pending');
      assert.match(containerOf(pod, 'sidecar')?.state?.waiting?.message ?? '', /kubelet-ts\/missing/);
    });
    it(titles.badImage.sidecar, async () => {
      assert.equal(containerOf(await imageless(), 'sidecar')?.containerID, undefined);
      scenarios.timeline(badImage).never('sidecar starting');
    });
    it(titles.badImage.regular, async () => {
      assert.equal(reasonOf(await imageless(), 'main'), 'PodInitializing');
      scenarios.timeline(badImage).never('main starting');
    });

    const continuous = scenarios.recorded(named('runs-on'), {
      restartPolicy: policy,
      initContainers: [sidecar('sidecar')],
      containers: [recorded('main', { runsFor: 0.5 })],
    });
    it(titles.continuous.done, async () => {
      await agent.until(continuous, 'over', isOver);
      scenarios.timeline(continuous).inOrder('sidecar started', 'main started', 'main ended');
      if (policy !== 'Always') assert.ok(ended(scenarios.timeline(continuous), 'sidecar'));
    });
    it(titles.continuous.once, async () => {
      const pod = await agent.until(continuous, 'over', isOver);
      assert.equal(containerOf(pod, 'sidecar')?.restartCount, 0);
      assert.equal(scenarios.timeline(continuous).times('sidecar starting'), 1);
    });
    it(titles.continuous.regular, async () => {
      const pod = await agent.until(continuous, 'over', isOver);
      const timeline = scenarios.timeline(continuous);
      timeline.inOrder('sidecar starting', 'main starting', 'main ended');
      if (policy === 'Always') return;
      assert.equal(containerOf(pod, 'main')?.state?.terminated?.exitCode, 0);
      assert.equal(timeline.times('main starting'), 1);
    });

    for (const code of [0, 1] as const) {
      const { done, before, after, regular } = titles.exits[code];
      const name = scenarios.recorded(named(`exits-${code}`), {
        restartPolicy: policy,
        initContainers: [
          sidecar('sidecar', { runsFor: 0.2, code }),
          recorded('init', { runsUntilAgain: 'sidecar starting' }),
        ],
        containers: [recorded('main', { runsUntilAgain: 'sidecar starting' })],
      });
      it(before, async () => {
        const timeline = await scenarios.untilRecorded(name, 'main started', (seen) =>
          seen.has('main started'),
        );
        assert.ok(timeline.at('sidecar starting', 1) < timeline.at('main starting'), timeline.text);
      });
      it(after, async () => {
        const restartedLater = ({ events }: Timeline) =>
          events
            .slice(events.findIndex(({ what }) => what === 'main started') + 1)
            .some(({ what }) => what === 'sidecar starting');
        await scenarios.untilRecorded(
          name,
          'the sidecar started again',
          (seen) => seen.has('main started') && restartedLater(seen),
        );
      });
      it(regular, async () => {
        const timeline = await scenarios.untilRecorded(name, 'main ended', (seen) => seen.has('main ended'));
        timeline.inOrder('sidecar starting', 'init ended', 'main starting', 'main ended');
      });
      it(done, async () => {
        const pod = await agent.until(name, 'over', isOver);
        assert.ok((containerOf(pod, 'sidecar')?.restartCount ?? 0) >= 2);
        assert.equal(scenarios.timeline(name).times('init starting'), 1);
      });
    }
  });
}

describe('an init container that keeps failing', () => {
  for (const [policy, { pending, counted, held }] of [
    [
      'Always',
      {
        pending:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Always an Init container before restartable init container continuously fails should continuously run Pod keeping it Pending',
        counted:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Always an Init container before restartable init container continuously fails should have Init container restartCount greater than 0',
        held: '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Always an Init container before restartable init container continuously fails should not start restartable init container',
      },
    ],
    [
      'OnFailure',
      {
        pending:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=OnFailure an Init container before restartable init container continuously fails should continuously run Pod keeping it Pending',
        counted:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=OnFailure an Init container before restartable init container continuously fails should have Init container restartCount greater than 0',
        held: '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=OnFailure an Init container before restartable init container continuously fails should not start restartable init container',
      },
    ],
  ] as const) {
    const name = scenarios.recorded(`fails-before-${policy.toLowerCase()}`, {
      restartPolicy: policy,
      initContainers: [recorded('init', { runsFor: 0.1, code: 1 }), sidecar('sidecar')],
      containers: [recorded('main')],
    });
    const failing = () =>
      agent.until(name, 'failing', (pod) => (containerOf(pod, 'init')?.restartCount ?? 0) > 1);
    it(pending, async () => assert.equal((await failing()).status?.phase, 'Pending'));
    it(counted, async () => {
      assert.ok((containerOf(await failing(), 'init')?.restartCount ?? 0) > 0);
      assert.ok(scenarios.timeline(name).times('init starting') > 1);
    });
    it(held, async () => {
      await failing();
      for (const container of ['sidecar', 'main']) scenarios.timeline(name).never(`${container} starting`);
    });
  }

  for (const [policy, { pending, counted, together }] of [
    [
      'Always',
      {
        pending:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Always an Init container after restartable init container fails should continuously run Pod keeping it Pending',
        counted:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Always an Init container after restartable init container fails should have Init container restartCount greater than 0',
        together:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Always an Init container after restartable init container fails should be running restartable init container and a failed Init container in parallel',
      },
    ],
    [
      'OnFailure',
      {
        pending:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=OnFailure an Init container after restartable init container fails should continuously run Pod keeping it Pending',
        counted:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=OnFailure an Init container after restartable init container fails should have Init container restartCount greater than 0',
        together:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=OnFailure an Init container after restartable init container fails should be running restartable init container and a failed Init container in parallel',
      },
    ],
  ] as const) {
    const name = scenarios.recorded(`fails-after-${policy.toLowerCase()}`, {
      restartPolicy: policy,
      initContainers: [sidecar('sidecar'), recorded('init', { runsFor: 0.1, code: 1 })],
      containers: [recorded('main')],
    });
    const failing = () =>
      agent.until(name, 'failing', (pod) => (containerOf(pod, 'init')?.restartCount ?? 0) > 1);
    it(pending, async () => {
      assert.equal((await failing()).status?.phase, 'Pending');
      scenarios.timeline(name).never('main starting');
    });
    it(counted, async () => assert.ok((containerOf(await failing(), 'init')?.restartCount ?? 0) > 0));
    it(together, async () => {
      const pod = await failing();
      assert.ok(containerOf(pod, 'sidecar')?.state?.running);
      assert.equal(containerOf(pod, 'sidecar')?.restartCount, 0);
      scenarios.timeline(name).together('sidecar', 'init');
    });
  }

  const before = scenarios.recorded('fails-before-never', {
    restartPolicy: 'Never',
    initContainers: [recorded('init', { runsFor: 0.1, code: 1 }), sidecar('sidecar')],
    containers: [recorded('main')],
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Never an Init container before restartable init container fails should mark a Pod as failed and produce log', async () => {
    await scenarios.phase(before, 'Failed');
    assert.ok(scenarios.timeline(before).has('init ended'));
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Never an Init container before restartable init container fails should mark an Init container as failed', async () => {
    const pod = await scenarios.phase(before, 'Failed');
    const state = containerOf(pod, 'init')?.state?.terminated;
    assert.deepEqual([state?.exitCode, state?.reason], [1, 'Error']);
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Never an Init container before restartable init container fails should not start restartable init container', async () => {
    await scenarios.phase(before, 'Failed');
    for (const name of ['sidecar', 'main']) scenarios.timeline(before).never(`${name} starting`);
  });

  const behind = scenarios.recorded('fails-after-never', {
    restartPolicy: 'Never',
    initContainers: [sidecar('sidecar'), recorded('init', { runsFor: 0.5, code: 1 })],
    containers: [recorded('main')],
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Never an Init container after restartable init container fails should mark a Pod as failed and produce log', async () => {
    await scenarios.phase(behind, 'Failed');
    scenarios.timeline(behind).inOrder('init ended', 'sidecar stopping', 'sidecar ended');
    scenarios.timeline(behind).never('main starting');
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Never an Init container after restartable init container fails should mark an Init container as failed', async () => {
    const pod = await scenarios.phase(behind, 'Failed');
    assert.equal(containerOf(pod, 'init')?.state?.terminated?.exitCode, 1);
    assert.equal(containerOf(pod, 'init')?.restartCount, 0);
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Never an Init container after restartable init container fails should be running restartable init container and a failed Init container in parallel', async () => {
    await scenarios.phase(behind, 'Failed');
    scenarios.timeline(behind).together('sidecar', 'init');
  });
});
