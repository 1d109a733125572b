/** Sees to it that this machine can be a node, and finds out what it is. */
import { mkdir } from 'node:fs/promises';
import type { CgroupHierarchy } from '../linux/cgroupfs.ts';
import { makeSharedMount } from '../linux/mounts.ts';
import type { AgentContext } from './agent-context.ts';
import { type MachineFacts, readMachineFacts } from './node-facts.ts';
import { preflight } from './preflight.ts';

/** Makes the root directory, shared with the mounts of containers. Rejects when pods could not run here. */
export async function examineMachine(
  { settings, logger }: Pick<AgentContext, 'settings' | 'logger'>,
  hierarchy: CgroupHierarchy,
): Promise<MachineFacts> {
  const { rootDirectory } = settings;
  await mkdir(rootDirectory, { recursive: true, mode: 0o750 });
  await preflight({ hierarchy, settings, logger });
  const facts = await readMachineFacts(hierarchy, rootDirectory);
  // What is mounted for pods must reach containers that run already, and what those mount the host, where
  // volumes ask for propagation. As with a kubelet it stays for the next agent: pods use it meanwhile.
  if (await makeSharedMount(rootDirectory)) {
    logger.info('Made the root directory a shared mount', { path: rootDirectory });
  }
  return facts;
}
