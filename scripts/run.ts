/**
 * `./run`: a fresh machine to running pods, and back. Every step can be repeated, and whatever ends the
 * run (Ctrl-C, a failed step, an agent that dies), the machine is left as it was, unless --keep is given.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type AgentProcess, endRememberedAgent, logTail, startAgent } from './demo/agent-process.ts';
import { freePort } from './demo/free-port.ts';
import { type PodListView, type PodProgress, progressLines, readProgress } from './demo/pod-progress.ts';
import {
  drainFlags,
  flagValue,
  parseRunArguments,
  type RunOptions,
  runsOnce,
  usage,
} from './demo/run-options.ts';
import { listSandboxes } from './machine/cri-calls.ts';
import { importDemoImages } from './machine/demo-images.ts';
import { containerdRequirements, installPackages } from './machine/install-packages.ts';
import { createOwnCgroup, removeOwnCgroup } from './machine/own-cgroup.ts';
import { startPrivateContainerd, stopPrivateContainerd } from './machine/private-containerd.ts';
import { readProcess, unmountBelow } from './machine/teardown.ts';

const checkout = join(import.meta.dirname, '..');
const home = '/var/lib/kubelet-ts';
const state = '/run/kubelet-ts';
const cgroup = 'kubelet-ts';
const paths = {
  containerd: join(home, 'containerd'),
  containerdState: join(state, 'containerd'),
  agentRoot: join(home, 'kubelet'),
  /** Holds podLogsDir of examples/kubelet-config.yaml. */
  logs: join(home, 'log'),
  agentLog: join(home, 'agent.log'),
  agentPid: join(state, 'agent.json'),
  runLock: join(state, 'run.json'),
  noManifests: join(state, 'no-manifests'),
  manifests: join(checkout, 'examples/pods'),
  configuration: join(checkout, 'examples/kubelet-config.yaml'),
  program: join(checkout, 'dist/kubelet'),
};

const started = Date.now();
function say(text: string): void {
  console.log(`${((Date.now() - started) / 1000).toFixed(1).padStart(6)} s  ${text}`);
}

/** Ends early when the signal does. */
async function pause(milliseconds: number, stop?: AbortSignal): Promise<void> {
  await delay(milliseconds, undefined, { signal: stop }).catch(() => {});
}

/** Two runs would pull the same containerd from under each other. */
function lock(): void {
  mkdirSync(state, { recursive: true });
  const own = JSON.stringify(readProcess(process.pid));
  try {
    writeFileSync(paths.runLock, own, { flag: 'wx' });
  } catch {
    const { pid, started: since } = readLock();
    if (pid !== process.pid && readProcess(pid)?.started === since) {
      throw new Error(`./run is running already (process ${pid}); end it with Ctrl-C there, or: kill ${pid}`);
    }
    writeFileSync(paths.runLock, own);
  }
}

function readLock(): { pid: number; started: string } {
  try {
    return JSON.parse(readFileSync(paths.runLock, 'utf8')) as { pid: number; started: string };
  } catch {
    return { pid: 0, started: '' };
  }
}

/** Flags that the person did not give, with ports that are free. */
async function agentFlags(endpoint: string, given: readonly string[]): Promise<string[]> {
  const flags = [`--container-runtime-endpoint=${endpoint}`, `--root-dir=${paths.agentRoot}`];
  if (flagValue(given, 'cert-dir') === undefined) flags.push(`--cert-dir=${paths.agentRoot}/pki`);
  if (flagValue(given, 'config') === undefined) flags.push(`--config=${paths.configuration}`);
  if (!givesManifests(given)) flags.push(`--pod-manifest-path=${paths.manifests}`);
  for (const [name, usual] of [
    ['healthz-port', 10248],
    ['read-only-port', 10255],
  ] as const) {
    if (flagValue(given, name) === undefined) flags.push(`--${name}=${await freePort(usual)}`);
  }
  // The main port has a default already; it is named only when something else listens there.
  const port = await freePort(10250);
  if (port !== 10250 && flagValue(given, 'port') === undefined) flags.push(`--port=${port}`);
  return [...flags, ...given];
}

function givesManifests(flags: readonly string[]): boolean {
  return ['pod-manifest-path', 'manifest-url', 'config'].some((name) => flagValue(flags, name) !== undefined);
}

async function readPods(port: string): Promise<Map<string, PodProgress> | undefined> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/pods`, { signal: AbortSignal.timeout(2000) });
    return response.ok ? readProgress((await response.json()) as PodListView) : undefined;
  } catch {
    return undefined; // Not listening yet, or no longer.
  }
}

interface Watch {
  flags: readonly string[];
  endpoint: string;
  agent: AgentProcess;
  stop: AbortSignal;
}

/** Shows pods until the run ends; once all are ready, says where to look. */
async function watchPods({ flags, endpoint, agent, stop }: Watch): Promise<void> {
  const port = flagValue(flags, 'read-only-port') ?? '0';
  const own = flagValue(flags, 'pod-manifest-path') === paths.manifests;
  const expected = own
    ? readdirSync(paths.manifests).filter((name) => /\.(ya?ml|json)$/.test(name)).length
    : 1;
  let pods = new Map<string, PodProgress>();
  let told = false;
  let complainAt = Date.now() + 30_000;
  while (!stop.aborted && agent.running()) {
    const now = port === '0' ? undefined : await readPods(port);
    if (now !== undefined) {
      for (const line of progressLines(pods, now)) say(line);
      pods = now;
    }
    const waiting = [...pods.values()].filter(({ ready }) => !ready);
    if (!told && !runsOnce(flags) && (port === '0' || (pods.size >= expected && waiting.length === 0))) {
      told = true;
      await tellWhereToLook(flags, endpoint, pods);
    } else if (!told && Date.now() > complainAt) {
      complainAt = Date.now() + 30_000;
      const names = waiting.map(({ name, waiting: reason }) => `${name} (${reason})`).join(', ');
      say(`still waiting for ${names || 'the agent'}; its log: ${paths.agentLog}`);
    }
    await pause(told ? 1000 : 200, stop);
  }
}

async function tellWhereToLook(
  flags: readonly string[],
  endpoint: string,
  pods: ReadonlyMap<string, PodProgress>,
): Promise<void> {
  const web = [...pods.values()].find(({ name }) => name.startsWith('default/web-'));
  const rows: [string, string][] = [
    ['health', `curl http://127.0.0.1:${flagValue(flags, 'healthz-port')}/healthz`],
    ['pods', `curl http://127.0.0.1:${flagValue(flags, 'read-only-port')}/pods`],
  ];
  if (web !== undefined) {
    const url = `http://${web.address}:8080/`;
    const answer = await fetch(url, { signal: AbortSignal.timeout(5000) }).then(
      ({ status }) => `answers ${status}`,
      (error: unknown) => `does not answer: ${String(error)}`,
    );
    rows.push(['web page', `curl ${url}   (${answer})`]);
  }
  rows.push(
    ['manifests', `${flagValue(flags, 'pod-manifest-path') ?? 'see --config'}   (change one and watch)`],
    ['logs', `${paths.agentLog} (agent), ${paths.logs}/pods`],
    ['runtime', `ctr --address ${endpoint.replace('unix://', '')} --namespace k8s.io containers list`],
  );
  console.log();
  for (const [name, text] of rows) console.log(`  ${name.padEnd(10)} ${text}`);
  console.log('\n  Ctrl-C ends it.\n');
}

/** Lets the agent itself end all pods: it is started once more with nothing that should run. */
async function endPods(endpoint: string, flags: readonly string[]): Promise<void> {
  // A sandbox whose processes have ended still has a network to be taken down, so none may be left at all.
  const pending = async (): Promise<string[]> => (await listSandboxes(endpoint)).map(({ pod }) => pod);
  const pods = await pending();
  if (pods.length === 0) return;
  say(`ending ${pods.length} pods`);
  mkdirSync(paths.noManifests, { recursive: true });
  const agent = await startAgent({
    program: paths.program,
    flags: drainFlags(flags, paths.noManifests),
    logFile: paths.agentLog,
    pidFile: paths.agentPid,
  });
  const deadline = Date.now() + 60_000;
  let left = pods;
  while (left.length > 0 && agent.running() && Date.now() < deadline) {
    await pause(200);
    left = await pending();
  }
  if (left.length > 0) {
    say(`${left.join(', ')} did not end by the agent and will be killed; see ${paths.agentLog}`);
  }
  await agent.stop();
}

/** Takes down what is there, whoever left it. */
async function removeEverything(): Promise<void> {
  await endRememberedAgent(paths.agentPid);
  await stopPrivateContainerd(paths.containerd);
  await removeOwnCgroup(cgroup);
  await unmountBelow(home);
  await unmountBelow(state);
  for (const path of [paths.agentRoot, paths.logs, state]) rmSync(path, { recursive: true, force: true });
}

/** Resolves to the exit code. */
async function run(options: RunOptions, stop: AbortSignal): Promise<number> {
  let ending: { endpoint: string; flags: string[] } | undefined;
  let agent: AgentProcess | undefined;
  let keep = false;
  try {
    mkdirSync(home, { recursive: true });
    if (await endRememberedAgent(paths.agentPid)) say('ended the agent of a run that was killed');
    await installPackages(containerdRequirements, say);
    stop.throwIfAborted();
    const containerd = await startPrivateContainerd({
      directory: paths.containerd,
      state: paths.containerdState,
      note: say,
    });
    const { endpoint } = containerd;
    say(
      `${containerd.adopted ? 'adopted' : 'started'} ${containerd.version}, pod network ${containerd.network.subnet}`,
    );
    stop.throwIfAborted();
    await importDemoImages({ endpoint, directory: paths.containerd, snapshotter: containerd.snapshotter });
    createOwnCgroup(cgroup);
    if (!containerd.adopted) rmSync(paths.agentLog, { force: true });
    const flags = await agentFlags(endpoint, options.kubeletFlags);
    stop.throwIfAborted();
    ending = { endpoint, flags };
    agent = await startAgent({
      program: paths.program,
      flags,
      logFile: paths.agentLog,
      pidFile: paths.agentPid,
    });
    say(`started the agent: dist/kubelet ${flags.join(' ')}`);
    keep = options.keep;
    const stopped = new Promise<undefined>((resolve) =>
      stop.addEventListener('abort', () => resolve(undefined)),
    );
    const watching = watchPods({ flags, endpoint, agent, stop });
    const code = await Promise.race([agent.ended, stopped]);
    await watching;
    if (code === undefined) return 0;
    if (!runsOnce(flags)) {
      say(
        `the agent ended by itself with exit code ${code}; the end of ${paths.agentLog}:\n${logTail(paths.agentLog)}`,
      );
      return code === 0 ? 1 : code;
    }
    say(`the agent ran once and ended with exit code ${code}; its log: ${paths.agentLog}`);
    return code;
  } catch (error) {
    if (stop.aborted) return 130;
    throw error;
  } finally {
    await agent?.stop();
    if (keep) {
      say('pods and containerd go on running; ./run adopts them, ./run --stop ends them');
    } else {
      if (ending !== undefined) {
        await endPods(ending.endpoint, ending.flags).catch((error: unknown) =>
          say(`ending pods: ${String(error)}`),
        );
      }
      await removeEverything();
      say(`everything is stopped; images and the agent's log stay in ${home}`);
    }
    rmSync(paths.runLock, { force: true });
  }
}

async function main(): Promise<number> {
  const options = parseRunArguments(process.argv.slice(2));
  if (options.action === 'help') {
    console.log(usage);
    return 0;
  }
  lock();
  if (options.action === 'stop') {
    if (!existsSync(home)) return 0;
    await removeEverything();
    say('everything is stopped');
    return 0;
  }
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      if (!stop.signal.aborted) say('stopping');
      stop.abort(new Error(`ended by ${name}`));
    });
  }
  return await run(options, stop.signal);
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(`./run: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
