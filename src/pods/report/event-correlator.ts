/**
 * Tells repetitions and floods of events apart, as every Kubernetes component does, so that one object in
 * trouble does not fill the API server. No I/O; time is passed in.
 *
 * - The same event again (same object, part, type, reason and message) is counted on the first one.
 * - More than ten different messages with one reason about one object within ten minutes become one event,
 *   whose message begins with `(combined from similar events): `.
 * - One object gets 25 events, then one every five minutes.
 *
 * Memory is bounded: what has not been heard of for longest is forgotten, and counted anew later.
 */

import { TokenBucket } from '../../concurrency/token-bucket.ts';
import type { EventObject } from '../../telemetry/events.ts';

interface EventNews {
  readonly object: EventObject;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

/** An event with all its repetitions. */
export interface EventSeries {
  readonly news: EventNews;
  /** The message last told; another one only for combined events. */
  message: string;
  /** Epoch milliseconds. */
  readonly firstAt: number;
  lastAt: number;
  count: number;
}

const similarLimit = 10;
const similarMs = 600_000;
const spam = { burst: 25, perSecond: 1 / 300 };

/** Remembers what was told and says of each event which series it belongs to. */
export class EventCorrelator {
  readonly #series: Recent<EventSeries>;
  readonly #similar: Recent<{ messages: Set<string>; lastAt: number }>;
  readonly #floods: Recent<TokenBucket>;

  /** `capacity` bounds each of the three memories; 1000 by default. */
  constructor(capacity = 1000) {
    this.#series = new Recent(capacity);
    this.#similar = new Recent(capacity);
    this.#floods = new Recent(capacity);
  }

  /** The series the event belongs to, counted; `undefined` when the object has had its share of events. */
  correlate(news: EventNews, now: number): EventSeries | undefined {
    const { kind, namespace = '', name, uid = '', fieldPath = '' } = news.object;
    const about = [kind, namespace, name, uid].join('\0');
    const combined = this.#isFlooded([about, news.type, news.reason].join('\0'), news.message, now);
    const flood = this.#floods.get(about, () => {
      return new TokenBucket({ capacity: spam.burst, perSecond: spam.perSecond, now });
    });
    if (!flood.take(now)) return undefined;

    const key = [about, news.type, news.reason, ...(combined ? [] : [fieldPath, news.message])].join('\0');
    const series = this.#series.get(key, () => {
      return { news, message: news.message, firstAt: now, lastAt: now, count: 0 };
    });
    series.message = combined ? `(combined from similar events): ${news.message}` : news.message;
    series.lastAt = now;
    series.count++;
    return series;
  }

  /** Whether so many different messages came lately that they are told as one. */
  #isFlooded(key: string, message: string, now: number): boolean {
    const similar = this.#similar.get(key, () => ({ messages: new Set<string>(), lastAt: now }));
    if (now - similar.lastAt > similarMs) similar.messages.clear();
    similar.lastAt = now;
    if (similar.messages.has(message)) return false;
    if (similar.messages.size >= similarLimit) return true;
    similar.messages.add(message);
    return false;
  }
}

/** The values asked for last, by key. */
class Recent<T> {
  readonly #capacity: number;
  readonly #values = new Map<string, T>();

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get(key: string, make: () => T): T {
    const value = this.#values.get(key) ?? make();
    this.#values.delete(key);
    this.#values.set(key, value);
    for (const oldest of this.#values.keys()) {
      if (this.#values.size <= this.#capacity) break;
      this.#values.delete(oldest);
    }
    return value;
  }
}
