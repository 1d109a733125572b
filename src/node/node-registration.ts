/**
 * Sees to it that the Node object exists. Looks for it first, since the conditions of a node that is known
 * already must stand; creates it, with its whole status, when it is missing. Tries for ever, with a back-off
 * of 100 ms to 7 s, and says once why it has to.
 */
import { type ApiClient, ApiError, type ApiRequest } from '../client/api-client.ts';
import { type Clock, sleep } from '../concurrency/clock.ts';
import type { Logger } from '../telemetry/logger.ts';
import { FailureLog, waitAfter } from './api-failure.ts';
import { type ClaimSighting, claimOf, isOfAnotherMachine } from './name-claim.ts';
import type { NodeDescriber } from './node-describer.ts';
import { leasePath } from './node-lease.ts';
import type { StartupTimes } from './node-startup-metrics.ts';
import type { Lease, Node } from './node-types.ts';
import type { OwnNode } from './own-node.ts';

const firstWaitMs = 100;
const longestWaitMs = 7000;
/** How long a new node waits for the first look at the runtime, to be Ready from its first second. */
const firstLookMs = 200;

export interface NodeRegistrationOptions {
  readonly client: Pick<ApiClient, 'request'>;
  /** `registerNode`: false only waits until somebody else has created the node. */
  readonly registerNode: boolean;
  readonly describer: NodeDescriber;
  readonly own: OwnNode;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Milliseconds for each call. */
  readonly timeoutMs: number;
  readonly startup?: StartupTimes;
  /** Settles when the runtime has been looked at for the first time. */
  readonly firstLook?: Promise<unknown>;
}

/** The node, and what of it was written just now when it was created. */
export interface Registered {
  readonly node: Node;
  readonly written?: Node;
}

export class NodeRegistration {
  readonly #options: NodeRegistrationOptions;
  readonly #failures: FailureLog;
  #sighting: ClaimSighting | undefined;

  constructor(options: NodeRegistrationOptions) {
    this.#options = options;
    this.#failures = new FailureLog({
      logger: options.logger,
      nodeName: options.describer.settings.name,
      message: 'Cannot register the node',
    });
  }

  /** Resolves with the node once it exists. Rejects only with the reason of `signal`. */
  async ensure(signal: AbortSignal): Promise<Registered> {
    const { clock, startup, logger, describer } = this.#options;
    for (let wait = firstWaitMs; ; wait = Math.min(2 * wait, longestWaitMs)) {
      signal.throwIfAborted();
      startup?.attempted();
      let failure: unknown;
      try {
        const registered = await this.#attempt(signal);
        if (registered) {
          this.#failures.succeeded();
          const { name } = describer.settings;
          if (registered.written) logger.info('Registered the node', { node: name });
          else logger.info('The node is registered already', { node: name });
          return registered;
        }
      } catch (error) {
        signal.throwIfAborted();
        failure = error;
        this.#failures.failed(error);
      }
      await sleep(clock, waitAfter(failure, wait), signal);
    }
  }

  /** Undefined: not yet; why has been said. */
  async #attempt(signal: AbortSignal): Promise<Registered | undefined> {
    const { describer, own, registerNode, startup, clock } = this.#options;
    const { name } = describer.settings;
    const [existing] = await Promise.all([
      this.#find<Node>(`/api/v1/nodes/${name}`, signal),
      describer.refresh(),
    ]);
    if (existing) {
      if (await this.#isTaken(existing, signal)) return undefined;
      own.set(existing);
      return { node: existing };
    }
    if (!registerNode) {
      this.#failures.says(
        'there is no Node object of this name, and registerNode is false: create it, or let the agent do so',
      );
      return undefined;
    }
    const looked = new AbortController();
    const patience = sleep(clock, firstLookMs, looked.signal).catch(() => {});
    const look = Promise.race([this.#options.firstLook?.catch(() => {}), patience]);
    await Promise.all([look, describer.awaitName()]);
    looked.abort();
    const written = describer.describe(undefined, { reconcile: true });
    try {
      const node = await this.#request<Node>(
        { method: 'POST', path: '/api/v1/nodes', body: written },
        signal,
      );
      startup?.registered();
      own.set(node);
      return { node, written };
    } catch (error) {
      // Somebody was quicker, or an answer was lost: the next look finds it.
      if (error instanceof ApiError && error.alreadyExists) return undefined;
      throw error;
    }
  }

  async #isTaken(existing: Node, signal: AbortSignal): Promise<boolean> {
    const { describer, clock, logger } = this.#options;
    const { name } = describer.settings;
    const { machine } = describer.facts().status;
    if (!isOfAnotherMachine(existing, machine)) return false;
    const lease = await this.#find<Lease>(leasePath(name), signal);
    const { alive, sighting } = claimOf(lease, this.#sighting, clock.now());
    this.#sighting = sighting;
    const { machineID, systemUUID } = existing.status?.nodeInfo ?? {};
    if (alive) {
      this.#failures.says(
        `the name "${name}" is in use by another machine that is alive (machine id ${machineID}, system UUID ${systemUUID}): ` +
          'give this one another name with --hostname-override, or stop the other; this one goes on once the lease has expired',
      );
      return true;
    }
    logger.info('Taking over the node from a machine that is gone', {
      node: name,
      formerMachineID: machineID,
      formerSystemUUID: systemUUID,
    });
    return false;
  }

  async #find<T>(path: string, signal: AbortSignal): Promise<T | undefined> {
    try {
      return await this.#request<T>({ method: 'GET', path }, signal);
    } catch (error) {
      if (error instanceof ApiError && error.notFound) return undefined;
      throw error;
    }
  }

  #request<T>(request: ApiRequest, signal: AbortSignal): Promise<T> {
    const { client, timeoutMs } = this.#options;
    return client.request<T>({ ...request, priority: 'heartbeat', timeoutMs, signal });
  }
}
