/** Images of a registry that wants a password, with the credentials the node has in Docker's file. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { after, before, describe, it, type TestContext } from 'node:test';
import { findProgram, runCommand } from '../../../scripts/machine/command.ts';
import { idle, shellPod, surroundings } from '../../e2e/agent.ts';
import { type Registry, registryProgram, startRegistry, users } from '../../registry/docker-registry.ts';
import { containerOf, reasonOf, Scenarios } from './scenarios.ts';

const { agent } = new Scenarios();
const { endpoint, image } = surroundings();
let registry: Registry | undefined;
let obstacle = '';

/** Pushes busybox into the registry under another name, and forgets that name again. */
async function push(reference: string): Promise<void> {
  const ctr = findProgram('ctr') ?? 'ctr';
  const common = ['--address', endpoint.replace(/^unix:\/\//, ''), '--namespace', 'k8s.io', 'images'];
  await runCommand(ctr, [...common, 'tag', image, reference]);
  const user = `alice:${users.alice.password}`;
  await runCommand(ctr, [...common, 'push', '--plain-http', '--user', user, reference]);
  await runCommand(ctr, [...common, 'remove', reference]);
}

before(async () => {
  try {
    registry = await startRegistry(await registryProgram(), agent.path('registry'));
    for (const name of ['open/app', 'closed/app']) await push(`127.0.0.1:${registry.port}/${name}:1`);
  } catch (error) {
    obstacle = `no registry: ${(error as Error).message}`;
    return;
  }
  const auth = Buffer.from(`alice:${users.alice.password}`).toString('base64');
  const auths = { [`127.0.0.1:${registry.port}/open`]: { auth } };
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
    assert.match(agent.log, /reason="Pulled" message="Successfully pulled image/);
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
    assert.match(agent.log, /Failed to pull image .*closed\/app/);
  });
});
