import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { after, afterEach, describe, it } from 'node:test';
import type { ActionKind } from '../../src/pods/action.ts';
import { Agent, idle, isRunning, shellPod, surroundings } from './agent.ts';

/** A pod with something of everything: volumes, an init container, two main containers. */
function fullPod(name: string) {
  const image = surroundings().image;
  const volumeMounts = [{ name: 'scratch', mountPath: '/scratch' }];
  return shellPod(name, '', {
    volumes: [{ name: 'scratch', emptyDir: { medium: 'Memory' } }],
    initContainers: [
      { name: 'setup', image, command: ['sh', '-c', 'echo once >>/scratch/setup'], volumeMounts },
    ],
    containers: ['one', 'two'].map((container) => ({
      name: container,
      image,
      command: ['sh', '-c', `echo ${container} >>/scratch/starts; ${idle}`],
      volumeMounts,
    })),
  });
}

const upward: ActionKind[] = [
  'write-record',
  'prepare-pod',
  'set-up-volumes',
  'ensure-image',
  'create-sandbox',
  'create-container',
  'start-container',
];
const downward: ActionKind[] = ['stop-container', 'stop-sandbox', 'tear-down', 'remove-sandbox', 'erase'];

describe('an agent that is killed', () => {
  const agent = new Agent();
  // A test that fails half-way must not be found in the way by the next one.
  afterEach(() => agent.clear());
  after(() => agent.dispose());

  for (const moment of ['before', 'after'] as const) {
    for (const kind of upward) {
      it(`${moment} ${kind} on the way up loses and repeats nothing`, async () => {
        agent.write('full', fullPod('full'));
        await agent.start({ killAt: `${moment}:${kind}` });
        await agent.ended();
        await agent.start();
        const pod = await agent.ready('full');
        assert.equal(await agent.exec(pod, 'one', 'cat', '/scratch/setup'), 'once\n');
        const starts = (await agent.exec(pod, 'one', 'cat', '/scratch/starts')).trim().split('\n').sort();
        assert.deepEqual(starts, ['one', 'two'], 'each container was started once');
        assert.equal(await agent.ours(), 1);
        const running = (await agent.instances(pod.metadata.uid)).filter(isRunning);
        assert.deepEqual(running.map(({ metadata }) => [metadata?.name, metadata?.attempt]).sort(), [
          ['one', 0],
          ['two', 0],
        ]);
      });
    }
    for (const kind of downward) {
      it(`${moment} ${kind} on the way down leaves nothing behind`, async () => {
        agent.write('full', fullPod('full'));
        await agent.start();
        const pod = await agent.ready('full');
        await agent.kill();
        agent.remove('full');
        await agent.start({ killAt: `${moment}:${kind}` });
        await agent.ended();
        await agent.start();
        const directories = ['root/pods', 'root/kubelet-ts/pods', 'logs/pods', 'logs/containers'];
        const left = () => directories.flatMap((directory) => readdirSync(agent.path(directory)));
        await agent.eventually(
          'gone',
          async () =>
            (await agent.pod('full')) === undefined && (await agent.ours()) === 0 && left().length === 0,
          () => left().join(' '),
        );
        assert.deepEqual(await agent.instances(pod.metadata.uid), []);
      });
    }
  }
});
