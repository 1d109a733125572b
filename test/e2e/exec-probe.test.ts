/** An exec probe whose time is up takes everything it has started with it, and nothing of the container. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Agent, idle, shellPod } from './agent.ts';

describe('an exec probe whose time is up', () => {
  const agent = new Agent();
  before(() => agent.start());
  after(() => agent.dispose());

  it('leaves no process behind, and the container its own', async () => {
    const probed = shellPod('probed', `sleep 3001 & ${idle}`);
    const [main] = probed.spec?.containers ?? [];
    const command = ['sh', '-c', 'sleep 3002 & sleep 3003; true'];
    // So long a period leaves seconds in which no probe runs.
    const livenessProbe = { exec: { command }, timeoutSeconds: 1, periodSeconds: 6, failureThreshold: 1000 };
    agent.write('probed', { ...probed, spec: { ...probed.spec, containers: [{ ...main!, livenessProbe }] } });
    const pod = await agent.ready('probed');
    const timedOut = () => agent.log.match(/timed out after 1s/g)?.length ?? 0;
    await agent.eventually('two time-outs', async () => timedOut() >= 2);
    let seen = '';
    await agent.eventually('the end of what the probe has started', async () => {
      seen = await agent.exec(pod, 'main', 'ps');
      return !/sleep 300[23]/.test(seen);
    });
    assert.match(seen, /sleep 3001/);
    const [status] = (await agent.ready('probed')).status?.containerStatuses ?? [];
    assert.equal(status?.restartCount, 0);
  });
});
