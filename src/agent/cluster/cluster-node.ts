/**
 * The node as its cluster sees it: gathers what the rooms find out about it, and keeps its Node object and
 * lease by {@link NodePresence}.
 */
import { uptime } from 'node:os';
import type { ApiClient } from '../../client/api-client.ts';
import type { ReflectorFactory } from '../../client/reflector.ts';
import type { Clock } from '../../concurrency/clock.ts';
import { LatestOnly } from '../../concurrency/latest-only.ts';
import { KUBERNETES_VERSION } from '../../config/kubernetes-version.ts';
import type { ClusterSettings } from '../../config/settings/cluster-settings.ts';
import { goArchitecture, type MachineIdentity, readMachineIdentity } from '../../node/machine-identity.ts';
import { hostIps, parseNodeIps } from '../../node/node-addresses.ts';
import type { NodeFacts } from '../../node/node-describer.ts';
import { NodeHealthMonitor } from '../../node/node-health.ts';
import { checkNodeLabels } from '../../node/node-labels.ts';
import { registrationLabels } from '../../node/node-object.ts';
import { NodePresence } from '../../node/node-presence.ts';
import type { Node, NodeImage } from '../../node/node-types.ts';
import { placementOf } from '../../node/own-node.ts';
import type { NodeState } from '../../pods/admission/admission.ts';
import type { RuntimeFacts } from '../../runtime/cri/runtime-check.ts';
import type { EventRecorder } from '../../telemetry/events.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { declaredFeatures } from '../declared-features.ts';
import type { MachineFacts } from '../node-facts.ts';
import type { NodeResources } from '../node-resources.ts';
import type { RuntimeLook } from '../runtime-link.ts';
import type { NodeMembership } from './membership.ts';
import { PodCidrs } from './pod-cidrs.ts';

export interface ClusterNodeOptions {
  readonly client: ApiClient;
  readonly createReflector: ReflectorFactory;
  readonly settings: ClusterSettings;
  readonly nodeName: string;
  readonly facts: MachineFacts;
  readonly resources: NodeResources;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly featureEnabled: (gate: string) => boolean;
  /** Each version of the Node object. */
  readonly onNode: (node: Node) => void;
  /** Its labels or taints are others, or known for the first time. */
  readonly onPlacement: () => void;
  /** Its addresses are others, or known for the first time. */
  readonly onHostIps: () => void;
}

type Runtime = Parameters<NodeMembership['runtimeFound']>[1];

export class ClusterNode implements NodeMembership {
  readonly #options: ClusterNodeOptions;
  readonly #health: NodeHealthMonitor;
  readonly #nodeIps: readonly string[];
  readonly #podCidrs: PodCidrs;
  readonly #imageLooks: LatestOnly;
  readonly #looked = Promise.withResolvers<void>();
  readonly #ending = new AbortController();
  readonly #startedAt: number;
  #presence: NodePresence | undefined;
  #runtime: Runtime | undefined;
  #runtimeFacts: RuntimeFacts | undefined;
  #images: readonly NodeImage[] | undefined;
  #imageIds: ReadonlySet<string> = new Set();

  /** Throws when the node's labels or addresses cannot be used. */
  constructor(options: ClusterNodeOptions) {
    const { clock, logger, settings } = options;
    this.#options = options;
    checkNodeLabels(settings.node.labels);
    this.#nodeIps = parseNodeIps(settings.node.ip);
    this.#startedAt = clock.now() - process.uptime() * 1000;
    this.#health = new NodeHealthMonitor({ clock, onChange: () => this.#presence?.wake() });
    this.#podCidrs = new PodCidrs({ clock, logger, signal: this.#ending.signal });
    this.#imageLooks = new LatestOnly(
      () => this.#lookAtImages(),
      (error) => {
        if (!this.#ending.signal.aborted) logger.warn('Images cannot be listed', { err: String(error) });
      },
    );
  }

  /** Registers the node and reports it until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { settings, nodeName, clock } = this.#options;
    const { node } = settings;
    const machine = readMachineIdentity(node);
    this.#presence = new NodePresence({
      ...this.#options,
      settings: {
        name: nodeName,
        // A host that is renamed by --hostname-override has that name for the cluster too.
        hostname: nodeName,
        labels: node.labels,
        taints: node.taints ?? [],
        // Kubernetes 1.36 has no setting for this any more: nodes are cordoned by kubectl.
        schedulable: true,
        providerId: node.providerId,
        externalCloud: node.externalCloud,
        controllerAttachDetach: true,
        nodeIps: this.#nodeIps,
        architecture: machine.architecture,
      },
      registerNode: node.register,
      updateFrequencyMs: node.updateFrequencyMs,
      reportFrequencyMs: node.reportFrequencyMs,
      leaseDurationSeconds: node.leaseDurationSeconds,
      facts: () => this.#facts(machine),
      bootedAt: clock.now() - uptime() * 1000,
      startedAt: this.#startedAt,
      firstLook: this.#looked.promise,
      onPodCidrs: (cidrs) => this.#podCidrs.set(cidrs),
    });
    await this.#presence.run(signal);
  }

  /** The Node object's uid; undefined until the node is registered. */
  get uid(): string | undefined {
    return this.#presence?.node?.metadata.uid;
  }

  hostIps(): readonly string[] {
    const reported = hostIps(this.#presence?.node?.status?.addresses ?? []);
    if (reported.length > 0) return reported;
    const given = this.#nodeIps.filter((ip) => !['0.0.0.0', '::'].includes(ip));
    return given.length > 0 ? given : this.#options.facts.addresses;
  }

  placement(): NodeState['placement'] {
    const { node } = this.#presence ?? {};
    if (node) return { ...placementOf(node), known: true };
    const { settings, nodeName } = this.#options;
    const labels = registrationLabels({
      labels: settings.node.labels,
      architecture: goArchitecture(process.arch),
      hostname: nodeName,
    });
    return { labels, taints: [], known: false };
  }

  runtimeFound(facts: RuntimeFacts, runtime: Runtime): void {
    this.#runtimeFacts = facts;
    this.#runtime = runtime;
    this.#podCidrs.runtimeFound(runtime);
    this.#imageLooks.refresh();
    this.#presence?.wake();
  }

  runtimeLooked(look: RuntimeLook): void {
    if (!look.answered) return;
    if (look.problem === undefined) this.#health.runtimeGood();
    else this.#health.runtimeNotReady(look.problem);
    this.#health.report({ networkNotReady: look.networkProblem });
    this.#looked.resolve();
  }

  relisted(): void {
    this.#health.relisted();
  }

  imageUsed(imageId: string | undefined): void {
    if (imageId === undefined || !this.#imageIds.has(imageId)) this.#imageLooks.refresh();
  }

  close(): void {
    this.#ending.abort(new Error('the agent stops'));
    this.#health.close();
  }

  #facts(machine: MachineIdentity): NodeFacts {
    const { facts, resources, settings } = this.#options;
    const runtime = this.#runtimeFacts;
    return {
      health: this.#health.health,
      status: {
        capacity: resources.capacity,
        allocatable: resources.allocatable,
        machine,
        swapBytes: facts.swaps.reduce((sum, { size }) => sum + size, 0),
        runtime,
        kubeletVersion: KUBERNETES_VERSION,
        port: settings.node.port,
        images: this.#images,
        maxImages: settings.node.maxImages,
        // None of the kinds of volumes that there are is attached to a node.
        volumesInUse: [],
        runtimeHandlers: runtime?.handlers.map(({ name, features }) => ({
          name,
          ...(features && {
            features: {
              recursiveReadOnlyMounts: features.recursiveReadOnlyMounts,
              userNamespaces: features.userNamespaces,
            },
          }),
        })),
        supplementalGroupsPolicy: runtime?.features?.supplementalGroupsPolicy,
        declaredFeatures: declaredFeatures(this.#options.featureEnabled, runtime?.features).declared,
      },
    };
  }

  async #lookAtImages(): Promise<void> {
    const { signal } = this.#ending;
    if (!this.#runtime || signal.aborted) return;
    const { images } = await this.#runtime.listImages({ filter: undefined }, { signal });
    this.#imageIds = new Set(images.map(({ id }) => id));
    this.#images = images.map(({ repoDigests, repoTags, size }) => ({
      names: [...repoDigests, ...repoTags],
      sizeBytes: Number(size),
    }));
    this.#presence?.wake();
  }
}
