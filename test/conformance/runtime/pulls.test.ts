/** Images of a registry that wants a password, with the credentials the node has in Docker's file. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { after, before, describe, it, type TestContext } from 'node:test';
import { idle, shellPod } from '../../e2e/agent.ts';
import type { Registry } from '../../registry/docker-registry.ts';
import { allowed, startClosedRegistry } from './closed-registry.ts';
import { containerOf, reasonOf, Scenarios } from './scenarios.ts';

const scenarios = new Scenarios();
const { agent } = scenarios;
let registry: Registry | undefined;
let obstacle = '';

before(async () => {
  try {
    registry = await startClosedRegistry(agent.path('registry'), ['open/app', 'closed/app']);
  } catch (error) {
    obstacle = `no registry: ${(error as Error).message}`;
    return;
  }
  const auths = { [`127.0.0.1:${registry.port}/open`]: allowed };
  writeFileSync(agent.path('root', 'config.json'), JSON.stringify({ auths }));
});
after(() => registry?.stop());

/** Writes a pod whose image has to be pulled; false where there is no registry to pull from. */
function pulling(context: TestContext, name: string, repository: string): boolean {
  if (!registry) {
    context.skip(obstacle);
    return false;
  }
  const reference = `127.0.0.1:${registry.port}/${repository}:1`;
  const main = { name: 'main', image: reference, imagePullPolicy: 'Always', command: ['sh', '-c', idle] };
  agent.write(name, shellPod(name, '', { containers: [main] }));
  return true;
}

describe('a new image', () => {
  it('[sig-node] Container Runtime blackbox test when running a container with a new image [Serial] should be able to pull image [NodeConformance]', async (context) => {
    if (!pulling(context, 'pulls', 'open/app')) return;
    const pod = await agent.ready('pulls');
    assert.match(containerOf(pod, 'main')?.imageID ?? '', /sha256:/);
    scenarios.logged('pulls', /reason="Pulled" message="Successfully pulled image/);
  });

  it('[sig-node] Container Runtime Conformance Test container runtime conformance blackbox test when running a container with a new image [NodeConformance] [Disruptive] [Serial]', async (context) => {
    if (!pulling(context, 'by-credentials', 'open/app')) return;
    await agent.ready('by-credentials');
  });

  it('[sig-node] Container Runtime blackbox test when running a container with a new image [Serial] should not be able to pull from private registry without secret [NodeConformance]', async (context) => {
    if (!pulling(context, 'kept-out', 'closed/app')) return;
    const pod = await agent.until('kept-out', 'kept out', (seen) =>
      /^(?:ErrImagePull|ImagePullBackOff)$/.test(reasonOf(seen, 'main') ?? ''),
    );
    assert.equal(pod.status?.phase, 'Pending');
    scenarios.logged('kept-out', /Failed to pull image .*closed\/app/);
  });
});
