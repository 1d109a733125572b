/**
 * Tells the API server the status of pods.
 *
 * Guarantees: the newest state wins; per pod one request at a time, so order is kept; what comes together
 * is told together (see `status-urgency.ts` for what never waits); nothing is sent that the server has
 * already, and nothing is read, since the watch and the answers tell. Every patch names the object's uid, so
 * a pod made again under the same name never gets its predecessor's status. What cannot be delivered is
 * tried again until it is overtaken or the object is gone.
 *
 * Differs from the kubelet, which reads the pod before each patch, sends one patch after the other, and
 * reconciles all pods every 10 s: here the watch says when an object departs from what was told.
 */

import { isDeepStrictEqual } from 'node:util';
import { type ApiClient, ApiError } from '../../client/api-client.ts';
import { type Clock, sleep } from '../../concurrency/clock.ts';
import { Limiter } from '../../concurrency/limiter.ts';
import { isStaticPod, podAnnotations, podKey } from '../../kubernetes/pod-identity.ts';
import type { Pod, PodStatus } from '../../kubernetes/types.ts';
import { unlessAborted } from '../../objects/waiting.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { Histogram, Metrics } from '../../telemetry/metrics.ts';
import type { PodReport } from '../pod-worker-ports.ts';
import type { PodObject, PodObjects, PodObjectsChange } from './pod-objects.ts';
import { type StatusPatch, statusPatch } from './status-patch.ts';
import { companyMs, isUrgent } from './status-urgency.ts';

/** The API server, the pods' objects there, and time. */
export interface StatusReporterOptions {
  readonly api: Pick<ApiClient, 'request'>;
  readonly objects: PodObjects;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Requests under way at once; 8 by default. */
  readonly concurrency?: number;
}

interface Entry {
  pod: Pod;
  wanted: PodStatus;
  /** When the oldest untold news came, epoch milliseconds. */
  newsSince: number;
  /** When to send, epoch milliseconds; absent when there is nothing to say or nobody to say it to. */
  dueAt: number | undefined;
  /** Not before this, after the server has refused. */
  notBefore: number;
  refusals: number;
  sending: boolean;
  /** The server has taken a status since the object is known. */
  told: boolean;
  /** What the server did not take over although it accepted the patch; asking again would not help. */
  residue: string | undefined;
  /** The API server lets the object go: nothing more is told. */
  released: boolean;
  /** Whoever waits for the wanted status to be told. */
  readonly waiting: Set<() => void>;
}

/** Somebody else has changed what was told: set right, but in no duel. */
const repairMs = 10_000;
const refusalPause = { first: 1000, longest: 300_000 };
const outagePause = { first: 500, longest: 10_000 };

/** Brings the statuses of pods to the API server, the latest of each pod and the urgent ones first. */
export class StatusReporter {
  readonly #options: StatusReporterOptions;
  readonly #logger: Logger;
  readonly #requests: Limiter;
  readonly #duration: Histogram;
  /** By the pod's uid. */
  readonly #entries = new Map<string, Entry>();
  /** Those with something to say. */
  readonly #due = new Set<Entry>();
  readonly #ending = new AbortController();
  #cancelTimer: (() => void) | undefined;
  /** The server could not be asked: nobody tries before this, epoch milliseconds. */
  #pausedUntil = 0;
  #outages = 0;

  constructor(options: StatusReporterOptions) {
    this.#options = options;
    this.#logger = options.logger.with({ logger: 'status' });
    this.#requests = new Limiter(options.concurrency ?? 8);
    this.#duration = options.metrics.histogram({
      name: 'kubelet_pod_status_sync_duration_seconds',
      help: '[ALPHA] Duration in seconds to sync a pod status update, from the change to its acceptance.',
      buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 20, 30, 45, 60],
    });
  }

  /** Takes what a worker says of its pod. */
  report({ pod, status, view: { intent } }: Pick<PodReport, 'pod' | 'status' | 'view'>): void {
    const { uid } = pod.metadata;
    // Of a pod that the API server has forgotten nobody wants to hear any more.
    if (!isStaticPod(pod) && intent.kind === 'terminate' && !intent.releasesObject) return this.forget(uid);
    const entry = this.#entries.get(uid);
    if (!entry) {
      const fresh = newEntry(pod, status, this.#options.clock.now());
      this.#entries.set(uid, fresh);
      return this.#schedule(fresh);
    }
    entry.pod = pod;
    if (isDeepStrictEqual(entry.wanted, status)) return;
    entry.wanted = status;
    this.#schedule(entry);
  }

  /** Takes notice of what {@link PodObjects} has learned from the watch. */
  objectsChanged({ set, removed }: PodObjectsChange): void {
    // A watch that speaks is a server that can be asked.
    this.#pausedUntil = 0;
    for (const object of [...removed, ...set]) {
      const { uid, annotations = {} } = object.metadata;
      const entry = this.#entries.get(annotations[podAnnotations.configMirror] ?? uid);
      if (entry) this.#schedule(entry, { byObject: true });
    }
    this.#arm();
  }

  /**
   * Has the API server take the status reported last, then lets it delete the pod's object. Resolves when
   * the object is gone or another one has its name; waits as long as the server is away.
   */
  async release(pod: Pod, signal: AbortSignal): Promise<void> {
    const { objects } = this.#options;
    const entry = this.#entries.get(pod.metadata.uid);
    const either = AbortSignal.any([signal, this.#ending.signal]);
    // A pod that was begun from its record may end before the server has shown its object.
    await unlessAborted(objects.told, either);
    if (entry) await this.#whenTold(entry, either);
    // The object may be gone before the answer and the watch say so: whatever is said now comes too late.
    if (entry) entry.released = true;
    try {
      await this.#delete(pod, either);
    } catch (error) {
      if (entry) {
        entry.released = false;
        this.#schedule(entry);
      }
      throw error;
    }
  }

  async #delete(pod: Pod, signal: AbortSignal): Promise<void> {
    const { api, objects, clock } = this.#options;
    while (objects.of(pod)) {
      const wait = this.#pausedUntil - clock.now();
      if (wait > 0) await sleep(clock, wait, signal);
      try {
        const body = {
          kind: 'DeleteOptions',
          apiVersion: 'v1',
          gracePeriodSeconds: 0,
          preconditions: { uid: pod.metadata.uid },
        };
        const request = {
          method: 'DELETE',
          path: podPath(pod),
          body,
          priority: 'status',
          signal,
        } as const;
        await this.#requests.run(() => api.request(request), { signal, priority: 1 });
        this.#reached();
        return;
      } catch (error) {
        if (error instanceof ApiError && error.notFound) return;
        if (!isOutage(error) || signal.aborted) throw error;
        this.#pause(error);
      }
    }
  }

  /** Lets go of a pod that nothing is left of. */
  forget(uid: string): void {
    const entry = this.#entries.get(uid);
    if (!entry) return;
    entry.released = true;
    this.#entries.delete(uid);
    this.#due.delete(entry);
    settle(entry);
  }

  /** Ends all requests; what was not told yet, the next agent tells. */
  close(): void {
    this.#ending.abort(new Error('the agent stops'));
    this.#cancelTimer?.();
  }

  #whenTold(entry: Entry, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error);
      const onAbort = () => {
        entry.waiting.delete(onTold);
        reject(signal.reason as Error);
      };
      const onTold = () => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
      signal.addEventListener('abort', onAbort, { once: true });
      entry.waiting.add(onTold);
      this.#schedule(entry);
    });
  }

  /** What is to be said now, and to which object. */
  #news({ pod, wanted, residue }: Entry): { object: PodObject; patch: StatusPatch } | undefined {
    const object = this.#options.objects.of(pod);
    const patch = object && statusPatch(object.status ?? {}, wanted);
    if (!object || !patch || JSON.stringify(patch) === residue) return undefined;
    return { object, patch };
  }

  #schedule(entry: Entry, { byObject = false } = {}): void {
    if (entry.sending || entry.released) return;
    const news = this.#news(entry);
    if (!news) {
      entry.dueAt = undefined;
      this.#due.delete(entry);
      // Without an object there is nobody to tell; a static pod's mirror may still come.
      if (!this.#options.objects.of(entry.pod)) entry.told = false;
      return settle(entry);
    }
    const now = this.#options.clock.now();
    if (entry.dueAt === undefined) entry.newsSince = now;
    const atOnce = entry.waiting.size > 0 || isUrgent(news.object.status ?? {}, entry.wanted);
    const delay = byObject && entry.told ? repairMs : atOnce ? 0 : companyMs;
    entry.dueAt = Math.min(entry.dueAt ?? Number.POSITIVE_INFINITY, now + delay);
    this.#due.add(entry);
    this.#arm();
  }

  /** Sends what is due and sets the one timer for what is not. */
  #arm(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (this.#ending.signal.aborted) return;
    const { clock } = this.#options;
    const now = clock.now();
    let next = Number.POSITIVE_INFINITY;
    for (const entry of this.#due) {
      if (entry.dueAt === undefined || entry.sending) continue;
      const at = Math.max(entry.dueAt, entry.notBefore, this.#pausedUntil);
      if (at <= now) void this.#send(entry);
      else next = Math.min(next, at);
    }
    if (next !== Number.POSITIVE_INFINITY) {
      this.#cancelTimer = clock.after(next - now, () => this.#arm());
    }
  }

  async #send(entry: Entry): Promise<void> {
    entry.sending = true;
    entry.dueAt = undefined;
    this.#due.delete(entry);
    const { signal } = this.#ending;
    try {
      await this.#requests.run(() => this.#tell(entry), { signal });
    } catch (error) {
      if (signal.aborted) return;
      this.#refused(entry, error);
    } finally {
      entry.sending = false;
    }
    this.#schedule(entry);
    this.#arm();
  }

  /** Says what is to be said by the time it is this pod's turn. */
  async #tell(entry: Entry): Promise<void> {
    const { api, objects, clock } = this.#options;
    const news = this.#news(entry);
    if (!news || entry.released) return;
    const { object, patch } = news;
    const { pod, wanted, newsSince } = entry;
    const answer = await api.request<PodObject | undefined>({
      method: 'PATCH',
      path: `${podPath(pod)}/status`,
      patch: 'strategic',
      priority: 'status',
      body: { metadata: { uid: object.metadata.uid }, status: patch },
      signal: this.#ending.signal,
    });
    this.#reached();
    this.#duration.observe((clock.now() - newsSince) / 1000);
    entry.told = true;
    entry.refusals = 0;
    if (answer?.metadata?.uid === object.metadata.uid) objects.answered(answer);
    const left = statusPatch(objects.of(pod)?.status ?? {}, wanted);
    entry.residue = left && JSON.stringify(left);
    this.#logger.v(3, 'Status of a pod is told', { pod: podKey(pod), podUID: pod.metadata.uid });
  }

  #refused(entry: Entry, error: unknown): void {
    if (isOutage(error)) return this.#pause(error);
    const { clock, objects } = this.#options;
    if (error instanceof ApiError && error.notFound) {
      const object = objects.of(entry.pod);
      if (object) objects.forget(object);
      return;
    }
    // A conflict means that the name has passed to another object; the watch is about to say so.
    const pause = backOff(refusalPause, entry.refusals++);
    entry.notBefore = clock.now() + pause;
    if (error instanceof ApiError && error.conflict) return;
    this.#logger.error('The API server refuses the status of a pod; it is tried again', error, {
      pod: podKey(entry.pod),
      podUID: entry.pod.metadata.uid,
      retryInSeconds: pause / 1000,
    });
  }

  /** One failure stands for all pods: while the server is away they do not all knock at its door. */
  #pause(error: unknown): void {
    const { clock } = this.#options;
    const asked = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0;
    if (this.#pausedUntil <= clock.now()) {
      // A server that cannot be reached the client tells of, for all that ask.
      if (this.#outages === 0 && !(error instanceof ApiError && error.unreachable)) {
        this.#logger.warn('The API server takes no status now; pods are looked after all the same', {
          error: String(error),
        });
      }
      this.#pausedUntil = clock.now() + Math.max(asked, backOff(outagePause, this.#outages++));
    }
  }

  #reached(): void {
    this.#pausedUntil = 0;
    if (this.#outages === 0) return;
    this.#outages = 0;
    this.#logger.info('The API server takes statuses again');
  }
}

function newEntry(pod: Pod, wanted: PodStatus, now: number): Entry {
  return {
    pod,
    wanted,
    newsSince: now,
    dueAt: undefined,
    notBefore: 0,
    refusals: 0,
    sending: false,
    told: false,
    residue: undefined,
    released: false,
    waiting: new Set(),
  };
}

function settle({ waiting }: Entry): void {
  const told = [...waiting];
  waiting.clear();
  for (const resolve of told) resolve();
}

function isOutage(error: unknown): boolean {
  return error instanceof ApiError && (error.unreachable || error.status === 429 || error.status >= 500);
}

function backOff({ first, longest }: { first: number; longest: number }, failures: number): number {
  return Math.min(first * 2 ** Math.min(failures, 20), longest);
}

function podPath({ metadata: { name, namespace } }: Pod): string {
  return `/api/v1/namespaces/${namespace}/pods/${name}`;
}
