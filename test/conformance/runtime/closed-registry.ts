/** A registry with one image that everybody's password opens, and one that none the node has does. */
import { findProgram, runCommand } from '../../../scripts/machine/command.ts';
import { surroundings } from '../../e2e/agent.ts';
import { type Registry, registryProgram, startRegistry, users } from '../../registry/docker-registry.ts';

/** Starts it in `directory` with busybox as each of `repositories`, tagged `1`; nothing of them is on the node. */
export async function startClosedRegistry(
  directory: string,
  repositories: readonly string[],
): Promise<Registry> {
  const registry = await startRegistry(await registryProgram(), directory);
  for (const name of repositories) await push(`127.0.0.1:${registry.port}/${name}:1`);
  return registry;
}

/** Pushes busybox into the registry under another name, and forgets that name again. */
async function push(reference: string): Promise<void> {
  const { endpoint, image } = surroundings();
  const ctr = findProgram('ctr') ?? 'ctr';
  const common = ['--address', endpoint.replace(/^unix:\/\//, ''), '--namespace', 'k8s.io', 'images'];
  await runCommand(ctr, [...common, 'tag', image, reference]);
  const user = `alice:${users.alice.password}`;
  await runCommand(ctr, [...common, 'push', '--plain-http', '--user', user, reference]);
  await runCommand(ctr, [...common, 'remove', reference]);
}

/** An entry of Docker's file for one who may pull. */
export const allowed = { auth: Buffer.from(`alice:${users.alice.password}`).toString('base64') };
