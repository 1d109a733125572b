/**
 * Puts together what this node should look like in the API server, from what the agent knows right now and
 * what the server has. The decisions are pure functions of other files; this keeps what they cannot know:
 * since when a change waits to be written, and which changes have been announced as events. Each is announced
 * once, when it happens, whether the API server can be reached or not.
 */
import type { Clock } from '../concurrency/clock.ts';
import type { Logger } from '../telemetry/logger.ts';
import { type HostNetwork, nodeAddresses } from './node-addresses.ts';
import { isOwnCondition, nodeConditions } from './node-conditions.ts';
import type { NodeEvents } from './node-events.ts';
import type { NodeHealth } from './node-health.ts';
import { type NodeRegistrationSettings, newNode, reconcileMetadata } from './node-object.ts';
import { type NodeStatusFacts, nodeStatus } from './node-status.ts';
import type { Node, NodeCondition } from './node-types.ts';

/** What the agent knows of its node at the moment; plain values, at no cost. */
export interface NodeFacts {
  readonly health: NodeHealth;
  readonly status: NodeStatusFacts;
}

/** The host's network as it is now. */
export interface NetworkFacts {
  readonly host: HostNetwork;
  /** Addresses of the node's name in DNS; undefined before it has answered for the first time. */
  readonly lookedUp: readonly string[] | undefined;
}

export interface NodeDescriberOptions {
  readonly settings: NodeRegistrationSettings;
  readonly facts: () => NodeFacts;
  /** Reads the host's network; waits for DNS no longer than `patienceMs`. */
  readonly readNetwork: (patienceMs: number) => Promise<NetworkFacts>;
  readonly events: NodeEvents;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Longest time an answer of DNS is waited for: a node that is known keeps its addresses meanwhile, and has
 * more to tell than them; for a new one the default route decides after that.
 */
const dnsPatienceMs = { known: 200, new: 2000 };

export class NodeDescriber {
  readonly #options: NodeDescriberOptions;
  #network: NetworkFacts | undefined;
  /** Changes of conditions not written yet: `type=status` to the time they happened. */
  readonly #pending = new Map<string, string>();
  #addressProblem: string | undefined;
  #announcedBoot: string | undefined;
  #unschedulable = false;

  constructor(options: NodeDescriberOptions) {
    this.#options = options;
  }

  get settings(): NodeRegistrationSettings {
    return this.#options.settings;
  }

  facts(): NodeFacts {
    return this.#options.facts();
  }

  /** Looks at the host's network again. */
  async refresh(): Promise<void> {
    this.#network = await this.#options.readNetwork(dnsPatienceMs.known);
  }

  /** Waits for DNS where it decides: a new node has no address yet that could stand meanwhile. */
  async awaitName(): Promise<void> {
    if (this.#network?.lookedUp !== undefined) return;
    this.#network = await this.#options.readNetwork(dnsPatienceMs.new);
  }

  /** The node as it should be: a new one, or `existing` brought up to date. Call `refresh` before the first. */
  describe(existing: Node | undefined, options: { readonly reconcile: boolean }): Node {
    const { settings, clock, events } = this.#options;
    const { health, status: facts } = this.facts();
    const bootId = existing?.status?.nodeInfo?.bootID ?? '';
    const rebooted = bootId !== '' && facts.machine.bootId !== '' && bootId !== facts.machine.bootId;
    if (rebooted && this.#announcedBoot !== facts.machine.bootId) {
      this.#announcedBoot = facts.machine.bootId;
      events.rebooted(facts.machine.bootId);
    }
    const base = existing === undefined ? newNode(settings) : existing;
    // Labels follow the settings at the start only, so that an administrator may change them afterwards.
    const labelled = existing !== undefined && options.reconcile ? reconcileMetadata(base, settings) : base;
    const status = nodeStatus(existing?.status, facts);
    const before = existing?.status?.conditions ?? [];
    const conditions = nodeConditions({
      health,
      capacityNames: Object.keys(status.capacity ?? {}),
      existing: before,
      rebooted,
      pending: this.#pending,
      now: clock.now(),
    });
    this.#announce(before, conditions);
    this.#announceCordon(labelled);
    return { ...labelled, status: { ...status, conditions, addresses: this.#addresses(existing) } };
  }

  /** What was described last is written. */
  reported(): void {
    this.#pending.clear();
  }

  #addresses(existing: Node | undefined) {
    const { settings, logger } = this.#options;
    const { name: nodeName, hostname, nodeIps, externalCloud } = settings;
    const network = this.#network ?? { host: { interfaceAddresses: [], defaultAddresses: [] }, lookedUp: [] };
    const { addresses, problem } = nodeAddresses({
      nodeName,
      hostname,
      nodeIps,
      externalCloud,
      ...network,
      existing: existing?.status?.addresses ?? [],
    });
    if (problem !== this.#addressProblem && problem !== undefined) {
      logger.warn('The addresses of the node cannot be told', { node: nodeName, problem });
    }
    this.#addressProblem = problem;
    return [...addresses];
  }

  #announce(before: readonly NodeCondition[], after: readonly NodeCondition[]): void {
    const { events } = this.#options;
    for (const { type, status, lastTransitionTime = '' } of after) {
      if (!isOwnCondition(type)) continue;
      const old = before.find((condition) => condition.type === type)?.status;
      const key = `${type}=${status}`;
      const isKnown = this.#pending.has(key);
      for (const known of this.#pending.keys()) {
        if (known.startsWith(`${type}=`) && known !== key) this.#pending.delete(known);
      }
      if (old === status) this.#pending.delete(key);
      else if (!isKnown) {
        this.#pending.set(key, lastTransitionTime);
        // A node that begins its life NotReady has not turned so.
        if (old !== undefined || key !== 'Ready=False') events.condition(type, status);
      }
    }
  }

  #announceCordon({ spec }: Node): void {
    const unschedulable = spec?.unschedulable ?? false;
    if (unschedulable === this.#unschedulable) return;
    this.#unschedulable = unschedulable;
    this.#options.events.schedulable(!unschedulable);
  }
}
