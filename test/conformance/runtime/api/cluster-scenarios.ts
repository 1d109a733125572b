/**
 * One agent that is a member of a cluster, and many pods at once: a test file names its objects and pods
 * first, they start together, and each test looks at the one it is about.
 */
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import type { Container, Pod, PodManifest } from '../../../../src/kubernetes/types.ts';
import { type AgentOptions, idle, shellPod, surroundings } from '../../../e2e/agent.ts';
import { ClusterAgent } from '../../../e2e/cluster-agent.ts';
import { type ApiServer, startApiServer } from '../../../fixtures/apiserver/start-api-server.ts';

/** A file as a container finds it. */
export interface SeenFile {
  /** Numbers of its owner and its group. */
  readonly owner: string;
  readonly group: string;
  /** Octal, without a zero before it. */
  readonly mode: string;
  readonly content: Buffer;
}

/** Where containers of these tests have what {@link ClusterScenarios.files} reads. */
export const seen = '/seen';

/** For each file below {@link seen}, apart from the writer's own names: path, owner, group, mode, content. */
const list = `find -L ${seen} -type f | while read -r file; do
  case "$file" in */..*) continue ;; esac
  echo "$file $(stat -L -c '%u %g %a' "$file") $(base64 "$file" | tr -d '\\n')"
done`;

export class ClusterScenarios {
  readonly image = surroundings().image;
  readonly #objects: object[] = [];
  readonly #manifests = new Map<string, PodManifest>();
  readonly #staticPods = new Map<string, PodManifest>();
  readonly #looks = new Map<string, Promise<Map<string, SeenFile>>>();
  #server: ApiServer | undefined;
  #agent: ClusterAgent | undefined;
  #options: AgentOptions = {};

  /**
   * Registers the hooks that start API server and agent with everything declared meanwhile, and end them.
   * `prepare` is called between the two.
   */
  constructor(
    options: AgentOptions = {},
    prepare: (agent: ClusterAgent, server: ApiServer) => AgentOptions = () => options,
  ) {
    before(async () => {
      this.#server = await startApiServer();
      this.#agent = new ClusterAgent(this.#server, options);
      for (const [name, manifest] of this.#staticPods) this.#agent.write(name, manifest);
      this.#options = prepare(this.#agent, this.#server);
      await this.#agent.start(this.#options);
      await this.#agent.nodeReady();
      for (const object of this.#objects) this.#server.admin.create(object);
      for (const manifest of this.#manifests.values()) this.#agent.create(manifest);
    });
    after(async () => {
      await this.#agent?.dispose();
      await this.#server?.close();
    });
  }

  /** Only within tests and hooks. */
  get agent(): ClusterAgent {
    assert.ok(this.#agent, 'the agent has not been started');
    return this.#agent;
  }

  get server(): ApiServer {
    assert.ok(this.#server, 'the API server has not been started');
    return this.#server;
  }

  /** Ends the agent and starts it again, with its options as `change` makes them. */
  async restart(change: (options: AgentOptions) => AgentOptions = (same) => same): Promise<void> {
    this.#options = change(this.#options);
    await this.agent.kill('SIGTERM');
    await this.agent.start(this.#options);
  }

  /** Declares a static pod, whose manifest is there before the agent. Its mirror is called `<name>-node`. */
  staticPod(name: string, spec: Partial<Pod['spec']> = {}): string {
    this.#staticPods.set(name, this.manifest(name, spec));
    return name;
  }

  /** Declares an object that is there before the pods. */
  object(object: object): void {
    this.#objects.push(object);
  }

  /** Declares a config map; answers its name. */
  configMap(name: string, data: Readonly<Record<string, string>>, more: object = {}): string {
    this.object({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data, ...more });
    return name;
  }

  /** Declares a secret; answers its name. */
  secret(name: string, stringData: Readonly<Record<string, string>>, more: object = {}): string {
    this.object({ apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData, ...more });
    return name;
  }

  /** A container of busybox that runs until it is stopped. */
  idler(name: string, more: Partial<Container> = {}): Container {
    return { name, image: this.image, command: ['sh', '-c', idle], ...more };
  }

  /** Declares a pod that starts with the others; one idle container `main` unless `spec` says otherwise. */
  pod(name: string, spec: Partial<Pod['spec']> = {}, metadata: Partial<Pod['metadata']> = {}): string {
    if (this.#manifests.has(name)) throw new Error(`there are two pods ${name}`);
    this.#manifests.set(name, this.manifest(name, spec, metadata));
    return name;
  }

  manifest(
    name: string,
    spec: Partial<Pod['spec']> = {},
    metadata: Partial<Pod['metadata']> = {},
  ): PodManifest {
    const manifest = shellPod(name, idle, { dnsPolicy: 'Default', ...spec });
    return { ...manifest, metadata: { ...metadata, name } };
  }

  /** Runs a shell script in a container of a pod that gets ready. */
  async run(pod: string, script: string, container = 'main'): Promise<string> {
    return await this.agent.exec(await this.agent.podReady(pod), container, 'sh', '-c', script);
  }

  /** Waits in the container until the script succeeds. */
  async until(pod: string, script: string, container = 'main'): Promise<void> {
    const tries = `n=0; until ${script}; do n=$((n + 1)); [ $n -lt 300 ] || exit 1; usleep 100000; done`;
    await this.run(pod, tries, container);
  }

  /** Every file below {@link seen} as the container's user reads it; looked up once. */
  async files(pod: string, container = 'main'): Promise<Map<string, SeenFile>> {
    const key = `${pod}/${container}`;
    let look = this.#looks.get(key);
    if (!look) {
      look = this.run(pod, list, container).then(filesIn);
      this.#looks.set(key, look);
    }
    return await look;
  }

  /** One file below {@link seen}; fails when it is not there. */
  async file(pod: string, path: string, container = 'main'): Promise<SeenFile> {
    const files = await this.files(pod, container);
    const file = files.get(path);
    assert.ok(file, `${pod} has no ${path}, only ${[...files.keys()].join(', ')}`);
    return file;
  }

  /** What the API server has been told about a pod. */
  events(pod: string, reason: string): string[] {
    return this.server.admin.list('events').flatMap((event) => {
      const about = (event['involvedObject'] ?? event['regarding']) as { name?: string } | undefined;
      if (about?.name !== pod || event['reason'] !== reason) return [];
      return [String(event['message'] ?? event['note'])];
    });
  }

  async untilEvent(pod: string, reason: string, message: RegExp): Promise<void> {
    await this.agent.eventually(
      `${pod} told of ${reason} ${message.source}`,
      async () => this.events(pod, reason).some((text) => message.test(text)),
      () => this.events(pod, reason).join('\n'),
    );
  }

  /** The pod's volumes cannot be made: it is told why, and nothing of it runs. */
  async heldBack(pod: string, why: RegExp): Promise<Pod> {
    await this.untilEvent(pod, 'FailedMount', why);
    const object = await this.agent.untilObject(pod, (now) => now?.status?.conditions !== undefined);
    assert.ok(object);
    assert.equal(object.status?.phase, 'Pending');
    assert.deepEqual(await this.agent.instances(object.metadata.uid), []);
    return object;
  }
}

function filesIn(text: string): Map<string, SeenFile> {
  const lines = text.split('\n').filter((line) => line !== '');
  return new Map(
    lines.map((line) => {
      const [path = '', owner = '', group = '', mode = '', content = ''] = line.split(' ');
      return [
        path.slice(seen.length + 1),
        { owner, group, mode, content: Buffer.from(content, 'base64') },
      ] as const;
    }),
  );
}
