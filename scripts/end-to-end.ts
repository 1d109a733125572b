/**
 * Runs the end-to-end tests on this machine's kernel: a private containerd with the demo images, a cgroup
 * and a directory of their own, all taken down afterwards. `./check` runs it on the machine and once more
 * inside a virtual machine with cgroup v2.
 *
 *     node scripts/end-to-end.ts [--concurrency N] [TEST_FILE…]     (default: all of test/e2e, one at a time)
 *
 * Files that run at the same time share the containerd, so none of them may end it.
 *
 * The tests find what they need in the environment:
 *
 *     KUBELET_TS_TEST_CONTAINERD            endpoint, unix://…
 *     KUBELET_TS_TEST_CONTAINERD_DIRECTORY  for startPrivateContainerd, to bring it back after killing it
 *     KUBELET_TS_TEST_IMAGE                 busybox; the others are demoImages in scripts/machine
 *     KUBELET_TS_TEST_CGROUP_ROOT           for --cgroup-root; exists
 *     KUBELET_TS_TEST_DIRECTORY             for agent roots, logs and manifests; removed afterwards
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { demoImages, importDemoImages } from './machine/demo-images.ts';
import { createOwnCgroup, removeOwnCgroup } from './machine/own-cgroup.ts';
import { startPrivateContainerd, stopPrivateContainerd } from './machine/private-containerd.ts';
import { endProcessesOf, type ProcessEntry, readProcess, unmountBelow } from './machine/teardown.ts';

const checkout = join(import.meta.dirname, '..');

/** Runs node's test runner; resolves to its exit code. */
async function runTests(
  { files, concurrency }: { files: readonly string[]; concurrency: number },
  env: NodeJS.ProcessEnv,
  stop: AbortSignal,
): Promise<number> {
  // A test that waits for ever is to say which one it is; no file takes nearly as long, even emulated.
  const limits = [`--test-concurrency=${concurrency}`, '--test-timeout=900000'];
  const args = ['--no-warnings', '--test', ...limits, '--test-reporter=spec', ...files];
  const child = spawn(process.execPath, args, {
    cwd: checkout,
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const end = (): void => {
    child.kill('SIGTERM');
  };
  stop.addEventListener('abort', end);
  try {
    const [code] = (await once(child, 'exit')) as [number | null];
    return code ?? 1;
  } finally {
    stop.removeEventListener('abort', end);
  }
}

const parent = '/var/tmp';
const prefix = 'kubelet-ts-e2e-';
/** For agent roots, logs and manifests. */
const workDirectory = (directory: string): string => join(directory, 'work');

/** Names the process that works in a directory, so that one that was killed can be told from one at work. */
const ownerFile = (directory: string): string => join(directory, 'owner.json');

async function takeDown(directory: string): Promise<void> {
  // Agents of tests that were killed themselves would go on making what is taken down here.
  await endProcessesOf(workDirectory(directory));
  await stopPrivateContainerd(join(directory, 'containerd'), { data: true });
  await removeOwnCgroup(basename(directory));
  await unmountBelow(directory);
  rmSync(directory, { recursive: true, force: true });
}

/** What runs that were killed left behind goes first. */
async function takeDownAbandoned(): Promise<void> {
  for (const name of readdirSync(parent).filter((entry) => entry.startsWith(prefix))) {
    const directory = join(parent, name);
    if (!existsSync(ownerFile(directory))) continue;
    const { pid, started } = JSON.parse(readFileSync(ownerFile(directory), 'utf8')) as ProcessEntry;
    if (readProcess(pid)?.started === started) continue;
    console.error(`end to end: removing ${directory}, left by a run that was killed`);
    await takeDown(directory);
  }
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    options: { concurrency: { type: 'string', default: '1' } },
    allowPositionals: true,
  });
  const files = positionals.length > 0 ? positionals : globSync('test/e2e/**/*.test.ts', { cwd: checkout });
  const concurrency = Number(values.concurrency);
  if (!Number.isInteger(concurrency) || concurrency < 1)
    throw new Error(`--concurrency takes a number of test files, not ${values.concurrency}`);
  if (files.length === 0) throw new Error('there is no test in test/e2e');
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => stop.abort());

  await takeDownAbandoned();
  const directory = mkdtempSync(join(parent, prefix));
  writeFileSync(ownerFile(directory), JSON.stringify(readProcess(process.pid)));
  const cgroup = basename(directory);
  const containerdDirectory = join(directory, 'containerd');
  const work = workDirectory(directory);
  try {
    mkdirSync(work);
    const containerd = await startPrivateContainerd({
      directory: containerdDirectory,
      note: (text) => console.error(text),
    });
    const { endpoint, snapshotter, version, network } = containerd;
    await importDemoImages({ endpoint, directory: containerdDirectory, snapshotter });
    createOwnCgroup(cgroup);
    console.error(`end to end: ${version}, ${snapshotter}, ${network.subnet}`);
    if (stop.signal.aborted) return 130;
    const env = {
      ...process.env,
      KUBELET_TS_TEST_CONTAINERD: endpoint,
      KUBELET_TS_TEST_CONTAINERD_DIRECTORY: containerdDirectory,
      KUBELET_TS_TEST_IMAGE: demoImages.busybox,
      KUBELET_TS_TEST_CGROUP_ROOT: `/${cgroup}`,
      KUBELET_TS_TEST_DIRECTORY: work,
    };
    return await runTests({ files: files.toSorted(), concurrency }, env, stop.signal);
  } finally {
    await takeDown(directory);
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(`end to end: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
