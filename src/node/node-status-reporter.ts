/**
 * Keeps the Node object true: registers it, then writes its status whenever something changed, and now and
 * then when nothing did.
 *
 * Guarantees: what others need to know at once (Ready) is written at once; other changes within a second;
 * an unchanged status once in `reportFrequencyMs`. Nothing is written that the server has already, so an idle
 * node costs no request. A field that the server drops, being older than this agent, is not sent again and
 * again. Writes never overlap, and a failed one is tried again with a back-off, from the newest state. A
 * patch names the uid of the object it was made for: it never lands on another one of the same name.
 */
import { type ApiClient, ApiError } from '../client/api-client.ts';
import { type Clock, sleep } from '../concurrency/clock.ts';
import type { Logger } from '../telemetry/logger.ts';
import { Alarm } from './alarm.ts';
import { FailureLog, waitAfter } from './api-failure.ts';
import type { NodeDescriber } from './node-describer.ts';
import { nodePatch } from './node-patch.ts';
import type { NodeRegistration } from './node-registration.ts';
import type { StartupTimes } from './node-startup-metrics.ts';
import type { Node } from './node-types.ts';
import type { OwnNode } from './own-node.ts';

const jitter = 0.04;
const firstWaitMs = 200;
/** Least time between two writes of changes that nobody waits for. */
const changeGapMs = 1000;
/** A deleted node is registered again after this time, so that `kubectl delete node` can be followed by a stop. */
const returnAfterMs = 7000;

export interface NodeStatusReporterOptions {
  readonly client: Pick<ApiClient, 'request'>;
  readonly registration: NodeRegistration;
  readonly describer: NodeDescriber;
  readonly own: OwnNode;
  readonly clock: Clock;
  readonly logger: Logger;
  /** `nodeStatusUpdateFrequency` */
  readonly updateFrequencyMs: number;
  /** `nodeStatusReportFrequency` */
  readonly reportFrequencyMs: number;
  /** Milliseconds for each call. */
  readonly timeoutMs: number;
  readonly random: () => number;
  readonly startup?: StartupTimes;
}

export class NodeStatusReporter {
  readonly #options: NodeStatusReporterOptions;
  readonly #failures: FailureLog;
  readonly #alarm: Alarm;
  /** When status was last written, epoch milliseconds; undefined: not yet for this object. */
  #lastReport: number | undefined;
  /** Of which object the fields here tell. */
  #uid: string | undefined;
  readonly #registered = Promise.withResolvers<void>();
  /** Labels and annotations of an existing node are brought in line with the first report. */
  #isReconciled = false;
  /** The patch that would still be there after the last write: what the server does not take. */
  #refused = '';

  constructor(options: NodeStatusReporterOptions) {
    this.#options = options;
    this.#alarm = new Alarm(options.clock);
    this.#failures = new FailureLog({
      logger: options.logger,
      nodeName: options.describer.settings.name,
      message: 'Cannot write the status of the node',
    });
  }

  /** When status was last written, epoch milliseconds. */
  get lastReport(): number | undefined {
    return this.#lastReport;
  }

  /** Resolves once the Node object exists and is this machine's; never when `run` ends before. */
  get registered(): Promise<void> {
    return this.#registered.promise;
  }

  /** Something about the node has changed; it is looked at now. */
  wake(): void {
    this.#alarm.ring();
  }

  /** Registers and reports until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { own } = this.#options;
    const stopListening = own.onChange((after) => {
      // Others judge a silent node; the judgement is over as soon as it is seen here.
      if (after === undefined || this.#isMisjudged(after)) this.#alarm.ring();
    });
    try {
      await this.#loop(signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      stopListening();
    }
  }

  async #loop(signal: AbortSignal): Promise<void> {
    const { registration, describer, own, clock, logger, updateFrequencyMs, random } = this.#options;
    const { name } = describer.settings;
    let backoff = firstWaitMs;
    let hasBeen = false;
    while (!signal.aborted) {
      let wait = updateFrequencyMs * (1 + jitter * random());
      if (own.current === undefined) {
        if (hasBeen) {
          logger.warn(
            'The Node object was deleted; it is registered again shortly unless the agent is stopped',
            {
              node: name,
            },
          );
          await sleep(clock, returnAfterMs, signal);
          // A machine on its way down is deleted by its cloud; coming back would leave an empty shell.
          if (describer.facts().health.shuttingDown) {
            await this.#alarm.wait(wait, signal);
            continue;
          }
        }
        const { node, written } = await registration.ensure(signal);
        if (written) this.#written(written, node);
        this.#registered.resolve();
        hasBeen = true;
      }
      try {
        await describer.refresh();
        wait = Math.min(wait, await this.#report(signal));
        backoff = firstWaitMs;
      } catch (error) {
        signal.throwIfAborted();
        wait = await this.#recover(error, backoff, signal);
        backoff = Math.min(2 * backoff, updateFrequencyMs);
      }
      await this.#alarm.wait(wait, signal);
    }
  }

  /** Writes what has to be written. Milliseconds until it has to be looked at again; Infinity: nothing waits. */
  async #report(signal: AbortSignal): Promise<number> {
    const { client, describer, own, clock, logger, timeoutMs, reportFrequencyMs } = this.#options;
    const existing = own.current;
    if (existing === undefined) return 0;
    if (existing.metadata.uid !== this.#uid) {
      this.#lastReport = undefined;
      this.#isReconciled = false;
      this.#uid = existing.metadata.uid;
    }
    const wanted = describer.describe(existing, { reconcile: !this.#isReconciled });
    const sinceReport = clock.now() - (this.#lastReport ?? Number.NEGATIVE_INFINITY);
    // A clock that was set back must not silence the node.
    const isDue = sinceReport >= reportFrequencyMs || sinceReport < 0;
    if (!isDue) {
      const change = nodePatch(existing, wanted, { ignoreHeartbeats: true });
      if (change === undefined || JSON.stringify(change) === this.#refused) {
        return Number.POSITIVE_INFINITY;
      }
      const isUrgent = readyStatus(existing) !== readyStatus(wanted);
      if (!isUrgent && sinceReport < changeGapMs) return changeGapMs - sinceReport;
    }
    const { metadata, ...rest } = nodePatch(existing, wanted) ?? {};
    const { uid } = existing.metadata;
    const answer = await client.request<Node>({
      method: 'PATCH',
      path: `/api/v1/nodes/${existing.metadata.name}/status`,
      patch: 'strategic',
      body: { metadata: { ...(metadata as object | undefined), uid }, ...rest },
      priority: 'heartbeat',
      timeoutMs,
      signal,
    });
    own.set(answer);
    if (this.#failures.succeeded()) {
      logger.info('The status of the node is written again', { node: existing.metadata.name });
    }
    this.#written(wanted, answer);
    return Number.POSITIVE_INFINITY;
  }

  #written(wanted: Node, answer: Node): void {
    const { describer, clock, startup } = this.#options;
    this.#uid = answer.metadata.uid;
    this.#lastReport = clock.now();
    this.#isReconciled = true;
    this.#refused = JSON.stringify(nodePatch(answer, wanted, { ignoreHeartbeats: true }) ?? '');
    describer.reported();
    if (readyStatus(wanted) === 'True') startup?.ready();
  }

  /** Milliseconds to wait before the next try. */
  async #recover(error: unknown, backoff: number, signal: AbortSignal): Promise<number> {
    const { own } = this.#options;
    if (error instanceof ApiError && error.notFound) {
      own.gone(own.current?.metadata.uid);
      return 0;
    }
    this.#failures.failed(error);
    // Another object has the name, or this one has changed under the patch: what is there now?
    if (error instanceof ApiError && error.status === 409) await this.#readAgain(signal);
    return waitAfter(error, backoff);
  }

  async #readAgain(signal: AbortSignal): Promise<void> {
    const { client, own, describer, timeoutMs } = this.#options;
    const before = own.current?.metadata.uid;
    try {
      const path = `/api/v1/nodes/${describer.settings.name}`;
      const node = await client.request<Node>({
        method: 'GET',
        path,
        priority: 'heartbeat',
        timeoutMs,
        signal,
      });
      own.set(node);
    } catch (error) {
      if (error instanceof ApiError && error.notFound) own.gone(before);
      else signal.throwIfAborted();
    }
  }

  /** The server believes something else about Ready than this agent wrote. */
  #isMisjudged(node: Node): boolean {
    return this.#lastReport !== undefined && !['True', 'False'].includes(readyStatus(node) ?? '');
  }
}

function readyStatus(node: Node): string | undefined {
  return node.status?.conditions?.find(({ type }) => type === 'Ready')?.status;
}
