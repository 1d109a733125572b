/**
 * This node's presence in a cluster: its Node object registered and true, its lease renewed, its own object
 * watched. The parts run side by side; none waits for another, once the object exists.
 */
import type { ApiClient, Reflector, ReflectorOptions } from '../client/api-client.ts';
import type { Clock } from '../concurrency/clock.ts';
import type { EventRecorder } from '../telemetry/events.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { NameLookup, readHostNetwork } from './host-network.ts';
import { type NetworkFacts, NodeDescriber, type NodeFacts } from './node-describer.ts';
import { NodeEvents } from './node-events.ts';
import { NodeLease } from './node-lease.ts';
import type { NodeRegistrationSettings } from './node-object.ts';
import { NodeRegistration } from './node-registration.ts';
import { StartupTimes } from './node-startup-metrics.ts';
import { NodeStatusReporter } from './node-status-reporter.ts';
import type { Node } from './node-types.ts';
import { NodeWatch } from './node-watch.ts';
import { type NodePlacement, OwnNode } from './own-node.ts';

export interface NodePresenceOptions {
  readonly client: Pick<ApiClient, 'request'>;
  readonly createReflector: (options: ReflectorOptions<Node>) => Pick<Reflector<Node>, 'run'>;
  readonly settings: NodeRegistrationSettings;
  /** `registerNode` */
  readonly registerNode: boolean;
  /** `nodeStatusUpdateFrequency` and `nodeStatusReportFrequency`. */
  readonly updateFrequencyMs: number;
  readonly reportFrequencyMs: number;
  /** `nodeLeaseDurationSeconds` */
  readonly leaseDurationSeconds: number;
  /** What the agent knows at the moment; asked for often, so it must cost nothing. */
  readonly facts: () => NodeFacts;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Epoch milliseconds: of the machine's boot, and of the agent's start. */
  readonly bootedAt: number;
  readonly startedAt: number;
  /** Settles when the runtime has been looked at for the first time. */
  readonly firstLook?: Promise<unknown>;
  /** Each version of the Node object, once it is this machine's. */
  readonly onNode?: (node: Node) => void;
  readonly onPodCidrs?: (cidrs: readonly string[]) => void;
  readonly onPlacement?: (placement: NodePlacement) => void;
  readonly onHostIps?: (ips: readonly string[]) => void;
  /** 0 to below 1; `Math.random` by default. */
  readonly random?: () => number;
  /** The host's network; read from the system by default. */
  readonly readNetwork?: (patienceMs: number) => Promise<NetworkFacts>;
}

export class NodePresence {
  readonly #own = new OwnNode();
  readonly #reporter: NodeStatusReporter;
  readonly #lease: NodeLease;
  readonly #watch: NodeWatch;

  constructor(options: NodePresenceOptions) {
    const { client, settings, clock, logger, metrics, random = Math.random } = options;
    const { updateFrequencyMs, reportFrequencyMs, leaseDurationSeconds } = options;
    const own = this.#own;
    // As the kubelet's heartbeat client has it: a call that takes longer is worth a new one.
    const timeoutMs = Math.min(updateFrequencyMs, leaseDurationSeconds * 1000);
    const describer = new NodeDescriber({
      settings,
      facts: options.facts,
      readNetwork: options.readNetwork ?? networkReader(settings, clock, () => this.wake()),
      events: new NodeEvents({ recorder: options.events, nodeName: settings.name }),
      clock,
      logger,
    });
    const startup = new StartupTimes({
      clock,
      metrics,
      bootedAt: options.bootedAt,
      startedAt: options.startedAt,
    });
    const shared = { client, describer, own, clock, logger, timeoutMs, startup };
    const registration = new NodeRegistration({
      ...shared,
      registerNode: options.registerNode,
      ...(options.firstLook && { firstLook: options.firstLook }),
    });
    this.#reporter = new NodeStatusReporter({
      ...shared,
      registration,
      updateFrequencyMs,
      reportFrequencyMs,
      random,
    });
    this.#lease = new NodeLease({
      client,
      nodeName: settings.name,
      own,
      durationSeconds: leaseDurationSeconds,
      timeoutMs,
      clock,
      logger,
      random,
    });
    this.#watch = new NodeWatch({ ...options, nodeName: settings.name, own });
    metrics
      .gauge({ name: 'kubelet_node_name', help: 'Name of the node', labels: ['node'] })
      .set(1, { node: settings.name });
  }

  /** The Node object as last seen; undefined before it is registered. */
  get node(): Node | undefined {
    return this.#own.current;
  }

  /** When the lease was last renewed, epoch milliseconds. */
  get lastRenewal(): number | undefined {
    return this.#lease.lastRenewal;
  }

  /** Something that the node's status tells has changed. */
  wake(): void {
    this.#reporter.wake();
  }

  /** Until `signal` aborts; the node is left as it is, for the next agent to take up. */
  async run(signal: AbortSignal): Promise<void> {
    const reporting = this.#reporter.run(signal);
    // Not before the name is known to be this machine's: the lease may be another one's.
    await Promise.race([this.#reporter.registered, reporting]);
    if (signal.aborted) return await reporting;
    await Promise.all([reporting, this.#lease.run(signal), this.#watch.run(signal)]);
  }
}

/** DNS is asked only where its answer counts. */
function networkReader(
  settings: NodeRegistrationSettings,
  clock: Clock,
  onLate: () => void,
): (patienceMs: number) => Promise<NetworkFacts> {
  const { name, nodeIps, externalCloud } = settings;
  const isGiven = nodeIps.some((ip) => ip !== '0.0.0.0' && ip !== '::');
  const names = isGiven || externalCloud ? undefined : new NameLookup({ name, clock, onLate });
  return async (patienceMs) => {
    const [host, lookedUp] = await Promise.all([readHostNetwork(), names?.addresses(patienceMs) ?? []]);
    return { host, lookedUp };
  };
}
