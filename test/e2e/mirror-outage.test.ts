import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startPrivateContainerd } from '../../scripts/machine/private-containerd.ts';
import { type ApiServer, startApiServer } from '../fixtures/apiserver/start-api-server.ts';
import { shellPod, surroundings } from './agent.ts';
import { ClusterAgent } from './cluster-agent.ts';

/** Takes some seconds to end, so that there is time for the runtime to go away meanwhile. */
const slow = "trap 'sleep 4; exit' TERM; while :; do sleep 1 & wait $!; done";

describe('a static pod that ends while the runtime is down', () => {
  let server: ApiServer;
  let agent: ClusterAgent;
  before(async () => {
    server = await startApiServer();
    agent = new ClusterAgent(server);
    await agent.start();
  });
  after(async () => {
    await agent.dispose();
    await server.close();
  });

  it('[sig-node] MirrorPodWithGracePeriod when create a mirror pod and the container runtime is temporarily down during pod termination [NodeConformance] [Serial] [Disruptive] the mirror pod should terminate successfully', async () => {
    agent.write('unlucky', shellPod('unlucky', slow, { terminationGracePeriodSeconds: 60 }));
    await agent.podReady('unlucky-node');
    const { uid } = (await agent.ready('unlucky')).metadata;
    const { containerdDirectory } = surroundings();
    const { pid } = await startPrivateContainerd({ directory: containerdDirectory });
    agent.remove('unlucky');
    await agent.eventually('told to stop', async () =>
      agent.log
        .split('\n')
        .some((line) => line.includes('default/unlucky-node') && line.includes('stop-container')),
    );
    process.kill(pid, 'SIGKILL');
    await agent.eventually(
      'the runtime missed',
      async () => (await agent.runtime.version({ version: '' }).catch(() => undefined)) === undefined,
    );
    assert.ok(agent.object('unlucky-node'), 'its mirror stays while nobody knows whether it has ended');
    await startPrivateContainerd({ directory: containerdDirectory });
    await agent.podGone('unlucky-node');
    await agent.eventually('the containers removed', async () => (await agent.instances(uid)).length === 0);
  });
});
