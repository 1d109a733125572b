/** An agent under test that is a member of a cluster: the test API server, and kubectl to drive it. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import type { Pod, PodManifest } from '../../src/kubernetes/types.ts';
import type { ApiServer } from '../fixtures/apiserver/start-api-server.ts';
import { Agent, type AgentOptions, isReady } from './agent.ts';

export const mirrorMark = 'kubernetes.io/config.mirror';

const kubectlPath = process.env['KUBECTL'] ?? 'kubectl';
/** Emulated machines are slow; nothing here measures time. */
const patience = { timeoutMs: 60_000 };

export class ClusterAgent extends Agent {
  readonly server: ApiServer;
  #flags: readonly string[];

  constructor(server: ApiServer, options: AgentOptions = {}) {
    super(options);
    this.server = server;
    this.#flags = [`--kubeconfig=${this.path('kubeconfig')}`, `--cert-dir=${this.path('pki')}`];
    writeFileSync(this.path('kubeconfig'), server.kubeconfigFor('system:node:node'));
    writeFileSync(this.path('admin.kubeconfig'), server.kubeconfigFor('kubernetes-admin'));
  }

  override async start(options: AgentOptions = {}): Promise<void> {
    await super.start({ flags: this.#flags, ...options });
  }

  /** Flags to start with from now on, in place of those of a node that has its kubeconfig. */
  joinWith(...flags: readonly string[]): void {
    this.#flags = flags;
  }

  async kubectl(...args: string[]): Promise<string> {
    const flags = [`--kubeconfig=${this.path('admin.kubeconfig')}`, `--cache-dir=${this.path('cache')}`];
    const { stdout } = await promisify(execFile)(kubectlPath, [...flags, ...args], { timeout: 60_000 });
    return stdout;
  }

  /** Creates the pod on this node, as the scheduler would bind it. */
  create(pod: PodManifest): void {
    this.server.admin.create({ ...pod, spec: { ...pod.spec, nodeName: 'node' } });
  }

  object(name: string): Pod | undefined {
    const pod: unknown = this.server.admin.get('pods', `default/${name}`);
    return pod as Pod | undefined;
  }

  async untilObject(name: string, holds: (pod: Pod | undefined) => boolean): Promise<Pod | undefined> {
    const is = (pod: unknown) => holds(pod as Pod | undefined);
    const pod: unknown = await this.server.admin.watchUntil('pods', `default/${name}`, is, patience);
    return pod as Pod | undefined;
  }

  async podReady(name: string): Promise<Pod> {
    return (await this.untilObject(name, (pod) => pod !== undefined && isReady(pod)))!;
  }

  async podGone(name: string): Promise<void> {
    await this.untilObject(name, (pod) => pod === undefined);
  }

  async nodeReady(status = 'True'): Promise<void> {
    await this.server.admin.watchUntil(
      'nodes',
      'node',
      (node) => conditionOf(node, 'Ready') === status,
      patience,
    );
  }

  /** Deletes all pods of the API server, then the agent, for good. */
  override async dispose(): Promise<void> {
    this.server.faults.clear();
    if (this.pid === 0 || (await this.health()) === undefined) await this.start();
    for (const { metadata } of this.server.admin.list('pods')) {
      this.server.admin.delete('pods', `${metadata.namespace}/${metadata.name}`);
    }
    await this.eventually('the pods of the API server gone', async () =>
      this.server.admin.list('pods').every(({ metadata }) => mirrorMark in (metadata.annotations ?? {})),
    );
    await super.dispose();
  }
}

export function conditionOf(object: unknown, type: string): string | undefined {
  const { status } = (object ?? {}) as { status?: { conditions?: { type: string; status: string }[] } };
  return status?.conditions?.find((condition) => condition.type === type)?.status;
}
