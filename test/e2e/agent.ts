/**
 * An agent under test: its own root directory, manifests, logs, cgroup and ports, on the private
 * containerd that `scripts/end-to-end.ts` provides. Tests talk to it as an operator does: they write
 * manifests, read the read-only API, send signals.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { basename, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { systemClock } from '../../src/concurrency/clock.ts';
import type { Pod, PodManifest } from '../../src/kubernetes/types.ts';
import { unmountAtOrBelow } from '../../src/linux/mounts.ts';
import { CriClient } from '../../src/runtime/cri/cri-client.ts';
import { ContainerState, type ContainerStatus } from '../../src/runtime/generated/cri.ts';
import { silentMetrics } from '../../src/telemetry/metrics.ts';

/** What scripts/end-to-end.ts puts into the environment. */
export function surroundings() {
  const required = (name: string) => {
    const value = process.env[name];
    if (value === undefined) throw new Error(`${name} is not set: run this by scripts/end-to-end.ts`);
    return value;
  };
  return {
    endpoint: required('KUBELET_TS_TEST_CONTAINERD'),
    containerdDirectory: required('KUBELET_TS_TEST_CONTAINERD_DIRECTORY'),
    image: required('KUBELET_TS_TEST_IMAGE'),
    cgroupRoot: required('KUBELET_TS_TEST_CGROUP_ROOT'),
    directory: required('KUBELET_TS_TEST_DIRECTORY'),
  };
}

const checkout = join(import.meta.dirname, '../..');
/** Emulated machines are slow; nothing here measures time. */
const patienceMs = 120_000;

export interface AgentOptions {
  /** Further fields of the KubeletConfiguration. */
  readonly configuration?: Record<string, unknown>;
  readonly flags?: readonly string[];
  /** Runs the sources with a switch that kills the agent: `<before|after>:<action kind>`. */
  readonly killAt?: string;
}

export class Agent {
  readonly directory: string;
  readonly runtime: CriClient;
  readonly image = surroundings().image;
  readonly cgroupRoot: string;
  #options: AgentOptions;
  #process: ChildProcess | undefined;
  #readOnlyPort = 0;
  port = 0;
  healthPort = 0;

  constructor(options: AgentOptions = {}) {
    const { directory, endpoint, cgroupRoot } = surroundings();
    this.#options = options;
    this.directory = mkdtempSync(join(directory, 'agent-'));
    this.cgroupRoot = `${cgroupRoot}/${basename(this.directory).replaceAll(/[^a-zA-Z0-9]/g, '')}`;
    for (const name of ['manifests', 'root', 'logs']) mkdirSync(join(this.directory, name));
    this.runtime = new CriClient({ endpoint, clock: systemClock, metrics: silentMetrics });
  }

  path(...parts: string[]): string {
    return join(this.directory, ...parts);
  }

  /** Starts the agent and waits until it is healthy, or with `killAt` or `--runonce`, until it has ended. */
  async start(options: AgentOptions = this.#options): Promise<void> {
    const { endpoint } = surroundings();
    [this.port, this.healthPort, this.#readOnlyPort] = await Promise.all([
      freePort(),
      freePort(),
      freePort(),
    ]);
    const configuration = {
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      kind: 'KubeletConfiguration',
      failCgroupV1: false,
      failSwapOn: false,
      staticPodPath: this.path('manifests'),
      podLogsDir: this.path('logs', 'pods'),
      cgroupRoot: this.cgroupRoot,
      containerRuntimeEndpoint: endpoint,
      port: this.port,
      healthzPort: this.healthPort,
      readOnlyPort: this.#readOnlyPort,
      address: '127.0.0.1',
      logging: { verbosity: 4 },
      ...options.configuration,
    };
    writeFileSync(this.path('config.json'), JSON.stringify(configuration));
    const program = options.killAt
      ? [process.execPath, '--no-warnings', join(checkout, 'test/e2e/killable-agent.ts')]
      : [join(checkout, 'dist/kubelet')];
    const [command = '', ...args] = program;
    const agent = spawn(
      command,
      [
        ...args,
        '--config',
        this.path('config.json'),
        '--root-dir',
        this.path('root'),
        '--cert-dir',
        this.path('root', 'pki'),
        '--hostname-override',
        'node',
        ...(options.flags ?? []),
      ],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, ...(options.killAt && { KUBELET_TS_TEST_KILL_AT: options.killAt }) },
      },
    );
    agent.stderr?.on('data', (data: Buffer) => appendFileSync(this.path('log'), data));
    agent.stdout?.on('data', (data: Buffer) => appendFileSync(this.path('output'), data));
    agent.on('exit', (code, signal) => appendFileSync(this.path('log'), `agent ended: ${code ?? signal}\n`));
    this.#process = agent;
    if (options.killAt) return;
    await this.eventually('healthy', async () => agent.exitCode !== null || (await this.health()) === 'ok');
  }

  async health(): Promise<string | undefined> {
    return await fetch(`http://127.0.0.1:${this.healthPort}/healthz`).then(
      (answer) => answer.text(),
      () => undefined,
    );
  }

  get output(): string {
    return existsSync(this.path('output')) ? readFileSync(this.path('output'), 'utf8') : '';
  }

  get log(): string {
    return readFileSync(this.path('log'), 'utf8');
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  /** Ends the process with `signal`; pods stay. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<number | null> {
    const agent = this.#process;
    if (!agent || agent.exitCode !== null || agent.signalCode !== null) return agent?.exitCode ?? null;
    const exited = once(agent, 'exit');
    agent.kill(signal);
    await exited;
    return agent.exitCode;
  }

  /** Waits until the process has ended by itself. */
  async ended(): Promise<number | null> {
    const agent = this.#process;
    await this.eventually(
      'the end of the agent',
      async () => !agent || agent.exitCode !== null || agent.signalCode !== null,
    );
    return agent?.exitCode ?? null;
  }

  /** Ends every pod, then the agent; for `afterEach` hooks. */
  async clear(): Promise<void> {
    for (const name of readdirSync(this.path('manifests'))) rmSync(this.path('manifests', name));
    await this.kill();
    await this.start({ ...this.#options, flags: [], configuration: {} });
    await this.eventually(
      'all pods gone',
      async () => (await this.pods()).length === 0 && (await this.ours()) === 0,
    );
    await this.kill('SIGTERM');
  }

  /** As `clear`, for good; for `after` hooks. */
  async dispose(): Promise<void> {
    await this.clear();
    // An agent leaves its root directory mounted for the next one.
    await unmountAtOrBelow(this.path('root'));
    await this.runtime.close();
  }

  /** Sandboxes of this agent that the runtime has. */
  async ours(): Promise<number> {
    const { items } = await this.runtime.listPodSandbox({ filter: undefined });
    const root = this.path('root');
    return items.filter(({ annotations }) => annotations['io.kubelet-ts.root-directory'] === root).length;
  }

  /** Writes a manifest as careful programs do: whole, under its name at once. */
  write(name: string, pod: PodManifest | string): void {
    const text = typeof pod === 'string' ? pod : JSON.stringify(pod);
    writeFileSync(this.path(`.${name}.json`), text);
    renameSync(this.path(`.${name}.json`), this.path('manifests', `${name}.json`));
  }

  remove(name: string): void {
    rmSync(this.path('manifests', `${name}.json`));
  }

  /** `host:port` of the read-only API. */
  get readOnlyAddress(): string {
    return `127.0.0.1:${this.#readOnlyPort}`;
  }

  /** An answer of the read-only API. */
  async get(path: string, headers: Record<string, string> = {}): Promise<Response> {
    const answer = await fetch(`http://${this.readOnlyAddress}${path}`, { headers });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer;
  }

  async pods(): Promise<Pod[]> {
    const answer = await this.get('/pods');
    return ((await answer.json()) as { items: Pod[] }).items;
  }

  /** The pod of a manifest named `name`. */
  async pod(name: string): Promise<Pod | undefined> {
    return (await this.pods()).find(({ metadata }) => metadata.name === `${name}-node`);
  }

  /** Waits until the pod is as `is` says, and answers it. */
  async until(name: string, what: string, is: (pod: Pod) => boolean): Promise<Pod> {
    let last: Pod | undefined;
    await this.eventually(
      `pod ${name} ${what}`,
      async () => {
        last = await this.pod(name);
        return last !== undefined && is(last);
      },
      () => JSON.stringify(last?.status, null, 1),
    );
    return last!;
  }

  ready(name: string): Promise<Pod> {
    return this.until(name, 'ready', isReady);
  }

  async gone(name: string): Promise<void> {
    await this.eventually(`pod ${name} gone`, async () => (await this.pod(name)) === undefined);
  }

  async eventually(what: string, is: () => Promise<boolean>, detail: () => string = () => ''): Promise<void> {
    const started = Date.now();
    while (!(await is().catch(() => false))) {
      const waited = Date.now() - started;
      if (waited > patienceMs) {
        const tail = existsSync(this.path('log')) ? this.log.split('\n').slice(-25).join('\n') : '';
        throw new Error(`not ${what} within ${patienceMs / 1000} s: ${detail()}\n${tail}`);
      }
      // What takes long is looked at less often: each look costs the machine that is to do it.
      await pause(Math.min(50 + waited / 10, 300));
    }
  }

  /** Runs a command in a container and answers what it printed. */
  async exec(pod: Pod, container: string, ...cmd: string[]): Promise<string> {
    const status = pod.status?.containerStatuses?.find(({ name }) => name === container);
    const containerId = (status?.containerID ?? '').replace(/^.*:\/\//, '');
    const { stdout, stderr, exitCode } = await this.runtime.execSync({ containerId, cmd, timeout: 60n });
    if (exitCode !== 0)
      throw new Error(`${cmd.join(' ')} exited with ${exitCode}: ${Buffer.from(stderr).toString()}`);
    return Buffer.from(stdout).toString();
  }

  /** Every container of the pod the runtime knows, oldest first. */
  async instances(uid: string): Promise<ContainerStatus[]> {
    const labelSelector = { 'io.kubernetes.pod.uid': uid };
    const { containers } = await this.runtime.listContainers({
      filter: { id: '', podSandboxId: '', state: undefined, labelSelector },
    });
    const statuses = await Promise.all(
      containers.map(({ id }) => this.runtime.containerStatus({ containerId: id, verbose: false })),
    );
    return statuses
      .flatMap(({ status }) => (status ? [status] : []))
      .sort((a, b) => Number(a.createdAt - b.createdAt));
  }
}

export function isReady(pod: Pod): boolean {
  return pod.status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
}

export const isRunning = (status: ContainerStatus) => status.state === ContainerState.CONTAINER_RUNNING;

/** A pod of one busybox container that runs `script`. */
export function shellPod(name: string, script: string, spec: Partial<Pod['spec']> = {}): PodManifest {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 5,
      containers: [{ name: 'main', image: surroundings().image, command: ['sh', '-c', script] }],
      ...spec,
    },
  };
}

/** A script that runs for ever and ends at once when asked to. */
export const idle = 'trap exit TERM; while :; do sleep 1 & wait $!; done';

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address ? address.port : 0;
}
