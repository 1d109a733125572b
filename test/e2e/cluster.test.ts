import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type ApiServer, startApiServer } from '../fixtures/apiserver/start-api-server.ts';
import { idle, shellPod } from './agent.ts';
import { ClusterAgent } from './cluster-agent.ts';

describe('a member of a cluster', () => {
  let server: ApiServer;
  let agent: ClusterAgent;
  before(async () => {
    server = await startApiServer();
    agent = new ClusterAgent(server);
    await agent.start();
    await agent.nodeReady();
  });
  after(async () => {
    await agent.dispose();
    await server.close();
  });

  it('runs a pod, shows it and ends it, with few requests', async () => {
    await agent.nodeReady();
    server.requests.length = 0;
    agent.create(shellPod('web', idle, { dnsPolicy: 'Default' }));
    await agent.podReady('web');
    server.admin.delete('pods', 'default/web');
    await agent.podGone('web');
    const asked = server.requests.filter(({ resource }) => !['leases', 'nodes'].includes(resource));
    assert.ok(asked.length <= 11, asked.map(({ verb, path }) => `${verb} ${path}`).join('\n'));
  });
});
