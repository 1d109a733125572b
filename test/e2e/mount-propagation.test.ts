/** Mounts that travel between containers and the node, which takes a shared mount around the pods' volumes. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { mountAt, mountsAtOrBelow } from '../../src/linux/mount-table.ts';
import { Agent, idle, shellPod } from './agent.ts';

const agent = new Agent();
before(() => agent.start());
after(() => agent.dispose());

describe('mount propagation', () => {
  it('carries a mount from a Bidirectional volume to the node and to a HostToContainer one', async () => {
    const giving = `mkdir -p /data/inner && mount -t tmpfs given /data/inner && touch /data/inner/file; ${idle}`;
    const container = (name: string, script: string, mountPropagation: string) => ({
      name,
      image: agent.image,
      command: ['sh', '-c', script],
      volumeMounts: [{ name: 'data', mountPath: '/data', mountPropagation }],
    });
    agent.write(
      'mounting',
      shellPod('mounting', '', {
        volumes: [{ name: 'data', emptyDir: {} }],
        containers: [
          { ...container('giver', giving, 'Bidirectional'), securityContext: { privileged: true } },
          container('taker', idle, 'HostToContainer'),
          container('apart', idle, 'None'),
        ],
      }),
    );
    const pod = await agent.ready('mounting');
    const volumes = agent.path('root', 'pods', pod.metadata.uid, 'volumes');
    const inner = `${volumes}/kubernetes.io~empty-dir/data/inner`;
    await agent.eventually('mounted on the node', async () => (await mountAt(inner))?.source === 'given');
    assert.equal((await agent.exec(pod, 'taker', 'ls', '/data/inner')).trim(), 'file');
    assert.equal((await agent.exec(pod, 'apart', 'ls', '/data/inner')).trim(), '');

    await agent.kill();
    await agent.start();
    await agent.ready('mounting');
    const roots = (await mountsAtOrBelow(agent.path('root'))).filter(isRoot);
    assert.ok(roots.length <= 1, 'the next agent mounts nothing more');
    agent.remove('mounting');
    await agent.gone('mounting');
    assert.deepEqual(await mountsAtOrBelow(agent.path('root', 'pods')), []);
  });
});

const isRoot = ({ mountPoint }: { mountPoint: string }) => mountPoint === agent.path('root');
