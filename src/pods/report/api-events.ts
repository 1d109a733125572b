/**
 * Sends events to the API server, beside the node's own log of events: in core v1, as a kubelet does, or in
 * `events.k8s.io/v1` where the server takes only that.
 *
 * Guarantees: recording never waits and never throws; a repetition changes the event that is there; events
 * of one series go out in order, and those that pile up while one is under way go out as one. Memory is
 * bounded: when too many wait, new series are dropped and counted in the log.
 *
 * The pod an event is about is named by the uid it has on the node. For a static pod that is its config
 * hash, as with a kubelet: `kubectl describe` of a mirror looks for events under the mirror annotation, which
 * holds that hash.
 *
 * Differs from the kubelet, which gives an event up after twelve tries ten seconds apart: events wait for the
 * API server as long as there is room. What the server refuses is dropped, by both.
 */
import { type ApiClient, ApiError } from '../../client/api-client.ts';
import type { Clock } from '../../concurrency/clock.ts';
import { TokenBucket } from '../../concurrency/token-bucket.ts';
import type { EventObject, EventRecorder } from '../../telemetry/events.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { EventCorrelator, type EventSeries } from './event-correlator.ts';
import { coreForm, type EventForm, seriesForm } from './event-forms.ts';

/** Where events go and how they are signed. */
export interface ApiEventsOptions {
  readonly api: Pick<ApiClient, 'request'>;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** `eventRecordQPS`: events a second in the long run; 0 for no limit. */
  readonly qps: number;
  /** `eventBurst`: events that may go out at once. */
  readonly burst: number;
  /** Series that may wait to be sent; 1000 by default. */
  readonly capacity?: number;
}

/** The event of a series in the API server. */
interface Delivery {
  readonly name: string;
  /** False until the server has said that it is there. */
  made: boolean;
}

const parallel = 4;
const pause = { first: 1000, longest: 10_000 };
/** Longest message the API server takes. */
const longestMessage = 1024;

/** Hands events to the API server, in order and without ever holding anybody up. */
export class ApiEvents implements EventRecorder {
  readonly #options: ApiEventsOptions;
  readonly #logger: Logger;
  readonly #correlator = new EventCorrelator();
  readonly #deliveries = new WeakMap<EventSeries, Delivery>();
  /** Series with something to tell, oldest first. */
  readonly #waiting = new Set<EventSeries>();
  readonly #sending = new Set<EventSeries>();
  readonly #rate: TokenBucket | undefined;
  readonly #ending = new AbortController();
  #cancelTimer: (() => void) | undefined;
  #outages = 0;
  #pausedUntil = 0;
  #dropped = 0;
  #lastName = 0;
  #form = coreForm;
  /** The server has taken an event in this form, or has refused it in every one. */
  #hasForm = false;

  constructor(options: ApiEventsOptions) {
    this.#options = options;
    this.#logger = options.logger.with({ logger: 'events' });
    const { qps, burst, clock } = options;
    if (qps > 0) {
      this.#rate = new TokenBucket({ capacity: Math.max(1, burst), perSecond: qps, now: clock.now() });
    }
  }

  event(object: EventObject, type: 'Normal' | 'Warning', reason: string, text: string): void {
    if (this.#ending.signal.aborted) return;
    const message = text.length > longestMessage ? `${text.slice(0, longestMessage - 3)}...` : text;
    // A node's events go by its name: the uid of its object may not be known yet.
    const known = object.kind === 'Node' ? { ...object, uid: object.uid ?? object.name } : object;
    const news = { object: known, type, reason, message };
    const series = this.#correlator.correlate(news, this.#options.clock.now());
    if (!series) return;
    if (!this.#waiting.has(series) && this.#waiting.size >= (this.#options.capacity ?? 1000)) {
      if (this.#dropped++ === 0)
        this.#logger.warn('Too many events wait for the API server; new ones are dropped');
      return;
    }
    this.#waiting.add(series);
    this.#send();
  }

  /** Ends all requests; what was not sent stays in the node's own log of events. */
  close(): void {
    this.#ending.abort(new Error('the agent stops'));
    this.#cancelTimer?.();
  }

  #send(): void {
    const { clock } = this.#options;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    for (const series of this.#waiting) {
      if (this.#ending.signal.aborted || this.#sending.size >= parallel) return;
      if (this.#sending.has(series)) continue;
      const now = clock.now();
      const wait = Math.max(this.#pausedUntil - now, this.#rate?.wait(now) ?? 0);
      if (wait > 0) {
        this.#cancelTimer = clock.after(wait, () => this.#send());
        return;
      }
      this.#rate?.take(now);
      this.#waiting.delete(series);
      this.#sending.add(series);
      void this.#deliver(series);
    }
  }

  async #deliver(series: EventSeries): Promise<void> {
    try {
      await this.#tell(series);
      if (this.#dropped > 0) this.#logger.warn('Events were dropped', { count: this.#dropped });
      this.#dropped = 0;
      this.#outages = 0;
    } catch (error) {
      if (this.#ending.signal.aborted) return;
      if (isOutage(error)) this.#pause(series, error);
      else
        this.#logger.v(2, 'The API server refuses an event', {
          reason: series.news.reason,
          error: String(error),
        });
    } finally {
      this.#sending.delete(series);
    }
    this.#send();
  }

  /** Waits before the next try, with everything else. */
  #pause(series: EventSeries, error: unknown): void {
    const { clock } = this.#options;
    this.#waiting.add(series);
    if (this.#pausedUntil > clock.now()) return;
    const asked = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0;
    const wait = Math.min(pause.first * 2 ** Math.min(this.#outages++, 10), pause.longest);
    this.#pausedUntil = clock.now() + Math.max(asked, wait);
  }

  async #tell(series: EventSeries): Promise<void> {
    const known = this.#deliveries.get(series);
    if (known?.made) {
      try {
        await this.#patch(series, known.name);
        return;
      } catch (error) {
        // Events live for an hour or so; a repetition after that is a new one.
        if (!(error instanceof ApiError) || !error.notFound) throw error;
      }
    }
    // A try that had no answer may have come through: the same name again finds out.
    const delivery = known && !known.made ? known : { name: this.#newName(series), made: false };
    this.#deliveries.set(series, delivery);
    try {
      await this.#create(series, delivery.name);
    } catch (error) {
      if (!(error instanceof ApiError) || !error.alreadyExists) throw error;
    }
    delivery.made = true;
  }

  #patch(series: EventSeries, name: string): Promise<unknown> {
    return this.#options.api.request({
      method: 'PATCH',
      path: `${this.#form.path(namespaceOf(series))}/${name}`,
      patch: 'strategic',
      body: this.#form.repeat(series),
      signal: this.#ending.signal,
    });
  }

  async #create(series: EventSeries, name: string): Promise<void> {
    const isFirst = !this.#hasForm;
    try {
      await this.#createAs(this.#form, series, name);
      this.#hasForm = true;
      return;
    } catch (error) {
      if (!isFirst || !isUnknownForm(error)) throw error;
      await this.#createAs(seriesForm, series, name).catch(() => {
        // Once is enough to find out: whoever refuses both refuses events, not their form.
        this.#hasForm = true;
        throw error;
      });
    }
    if (this.#form !== seriesForm) {
      this.#logger.info('The API server takes events only in another form than usual', {
        apiVersion: seriesForm.apiVersion,
      });
    }
    this.#form = seriesForm;
    this.#hasForm = true;
  }

  #createAs(form: EventForm, series: EventSeries, name: string): Promise<unknown> {
    const namespace = namespaceOf(series);
    const { api, nodeName } = this.#options;
    return api.request({
      method: 'POST',
      path: form.path(namespace),
      body: form.create(series, { name, namespace, nodeName }),
      signal: this.#ending.signal,
    });
  }

  /** The object's name and a time in nanoseconds, never the same twice. */
  #newName({ news }: EventSeries): string {
    this.#lastName = (this.#lastName + 1) % 1_000_000;
    const nanos = BigInt(Math.floor(this.#options.clock.now())) * 1_000_000n + BigInt(this.#lastName);
    return `${news.object.name}.${nanos.toString(16)}`;
  }
}

/** Records with each of `recorders`. */
export function allEvents(...recorders: readonly EventRecorder[]): EventRecorder {
  return {
    event(object, type, reason, message) {
      for (const recorder of recorders) recorder.event(object, type, reason, message);
    },
  };
}

function isOutage(error: unknown): boolean {
  return error instanceof ApiError && (error.unreachable || error.status === 429 || error.status >= 500);
}

/** The server does not know events of this form, or does not let this node make any. */
function isUnknownForm(error: unknown): boolean {
  return error instanceof ApiError && [403, 404, 405].includes(error.status);
}

/** Events of objects without a namespace live in this one. */
function namespaceOf({ news }: EventSeries): string {
  return news.object.namespace || 'default';
}
