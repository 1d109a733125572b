/**
 * The node's heartbeat: a Lease in `kube-node-lease`, owned by the Node, renewed every quarter of its
 * duration before everything else the agent asks of the API server.
 *
 * Guarantees: renew times only go forwards, also when the machine's clock is set back, since the control
 * plane takes a renewal into the past for none. A failed renewal is tried again within 100 ms to 7 s. After
 * five failures in a row the lease is read anew. A lease that was deleted, or of a former Node object, is
 * made good.
 */
import { type ApiClient, ApiError, type ApiRequest } from '../client/api-client.ts';
import type { Clock } from '../concurrency/clock.ts';
import type { Logger } from '../telemetry/logger.ts';
import { Alarm } from './alarm.ts';
import { FailureLog, waitAfter } from './api-failure.ts';
import type { Lease, Node } from './node-types.ts';
import type { OwnNode } from './own-node.ts';

const namespace = 'kube-node-lease';
const renewFraction = 0.25;
const jitter = 0.04;
const firstWaitMs = 100;
const longestWaitMs = 7000;
const triesBeforeReading = 5;
/** Renewals by somebody else, in a row, before it is called a second agent. */
const strangersBeforeWarning = 2;
/** Renewals of unknown outcome that are remembered. */
const sentKept = 50;

export interface NodeLeaseOptions {
  readonly client: Pick<ApiClient, 'request'>;
  readonly nodeName: string;
  readonly own: OwnNode;
  /** `nodeLeaseDurationSeconds` */
  readonly durationSeconds: number;
  /** Milliseconds for each call. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** 0 to below 1; spreads the renewals of many nodes. */
  readonly random: () => number;
}

export class NodeLease {
  readonly #options: NodeLeaseOptions;
  readonly #failures: FailureLog;
  #lease: Lease | undefined;
  #failed = 0;
  #lastRenewal: number | undefined;
  #strangers = 0;
  /** Renew times this agent sent, of which it does not know whether they arrived, beside the last known. */
  readonly #sent = new Set<string>();

  constructor(options: NodeLeaseOptions) {
    this.#options = options;
    const { logger, nodeName } = options;
    this.#failures = new FailureLog({ logger, nodeName, message: 'Cannot renew the lease of the node' });
  }

  /** When the lease was last renewed, epoch milliseconds; undefined before the first time. */
  get lastRenewal(): number | undefined {
    return this.#lastRenewal;
  }

  /** Renews until `signal` aborts. Waits for the Node object first: a lease without owner would stay for ever. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, own, durationSeconds, random, logger, nodeName } = this.#options;
    const interval = durationSeconds * 1000 * renewFraction;
    const registered = new Alarm(clock);
    const stopListening = own.onChange((after, before) => {
      if (after && before?.metadata.uid !== after.metadata.uid) registered.ring();
    });
    let backoff = firstWaitMs;
    try {
      while (!signal.aborted) {
        let wait = interval * (1 + jitter * random());
        if (own.current) {
          try {
            await this.#renew(own.current, signal);
            if (this.#failures.succeeded())
              logger.info('The lease of the node is renewed again', { node: nodeName });
            this.#failed = 0;
            backoff = firstWaitMs;
          } catch (error) {
            if (signal.aborted) break;
            this.#failures.failed(error);
            if (++this.#failed % triesBeforeReading === 0) this.#lease = undefined;
            wait = Math.min(waitAfter(error, backoff), interval);
            backoff = Math.min(2 * backoff, longestWaitMs);
          }
        }
        await registered.wait(wait, signal);
      }
    } finally {
      stopListening();
    }
  }

  async #renew(owner: Node, signal: AbortSignal): Promise<void> {
    const { nodeName } = this.#options;
    // What a run in between may change: another writer (once more with its version), deletion (create).
    for (let attempt = 1; ; attempt++) {
      const found = this.#lease ?? (await this.#read(signal));
      const lease = this.#renewed(found, owner);
      try {
        const request: ApiRequest = found
          ? { method: 'PUT', path: leasePath(nodeName), body: lease }
          : { method: 'POST', path: leasesPath, body: lease };
        this.#remember(lease);
        this.#lease = await this.#request<Lease>(request, signal);
        this.#lastRenewal = this.#options.clock.now();
        this.#sent.clear();
        this.#remember(lease);
        return;
      } catch (error) {
        const isOutdated = error instanceof ApiError && (error.notFound || error.status === 409);
        if (!isOutdated || attempt === triesBeforeReading) throw error;
        this.#lease = undefined;
      }
    }
  }

  #remember(lease: Lease): void {
    this.#sent.add(lease.spec?.renewTime ?? '');
    const [oldest] = this.#sent;
    if (this.#sent.size > sentKept && oldest !== undefined) this.#sent.delete(oldest);
  }

  async #read(signal: AbortSignal): Promise<Lease | undefined> {
    const { nodeName } = this.#options;
    try {
      const lease = await this.#request<Lease>({ method: 'GET', path: leasePath(nodeName) }, signal);
      this.#lookForStrangers(lease);
      return lease;
    } catch (error) {
      if (error instanceof ApiError && error.notFound) return undefined;
      throw error;
    }
  }

  /** Somebody else renews this node's lease: most likely another agent that runs under its name. */
  #lookForStrangers(lease: Lease): void {
    const { logger, nodeName } = this.#options;
    if (this.#lastRenewal === undefined) return;
    const isStranger = !this.#sent.has(lease.spec?.renewTime ?? '');
    this.#strangers = isStranger ? this.#strangers + 1 : 0;
    if (this.#strangers !== strangersBeforeWarning) return;
    logger.warn(
      'Another agent renews the lease of this node; give one of the two another name with --hostname-override',
      { node: nodeName, holder: lease.spec?.holderIdentity },
    );
  }

  #renewed(lease: Lease | undefined, owner: Node): Lease {
    const { nodeName, durationSeconds, clock } = this.#options;
    const before = Date.parse(lease?.spec?.renewTime ?? '');
    const now = clock.now();
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      ...lease,
      metadata: {
        ...lease?.metadata,
        name: nodeName,
        namespace,
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: nodeName, uid: owner.metadata.uid ?? '' }],
      },
      spec: {
        ...lease?.spec,
        holderIdentity: nodeName,
        leaseDurationSeconds: durationSeconds,
        renewTime: microTime(Number.isNaN(before) ? now : Math.max(now, before + 1)),
      },
    };
  }

  #request<T>(request: ApiRequest, signal: AbortSignal): Promise<T> {
    const { client, timeoutMs } = this.#options;
    return client.request<T>({ ...request, priority: 'heartbeat', timeoutMs, signal });
  }
}

const leasesPath = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;

export function leasePath(nodeName: string): string {
  return `${leasesPath}/${nodeName}`;
}

/** `metav1.MicroTime`: RFC 3339 with six places. */
function microTime(epochMs: number): string {
  return new Date(epochMs).toISOString().replace('Z', '000Z');
}
