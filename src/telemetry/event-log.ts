/**
 * The node's own record of events: the last ones in memory, all of them for a while in a file, each in the
 * log. It is what an operator has when no API server keeps events, and what explains a node after the fact.
 *
 * Guarantees: recording never waits and never throws. An event that happens again (same object, type,
 * reason and message) is counted, not repeated; however fast it repeats, the file gets at most one line for
 * it per flush. Memory and file are bounded.
 */
import type { Clock } from '../concurrency/clock.ts';
import type { EventObject, EventRecorder } from './events.ts';
import type { Logger } from './logger.ts';
import { RotatedLines } from './rotated-lines.ts';

/** An event as Kubernetes writes it (core/v1 Event). */
export interface RecordedEvent {
  readonly kind: 'Event';
  readonly apiVersion: 'v1';
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly involvedObject: EventObject & { readonly apiVersion: 'v1' };
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
  readonly source: { readonly component: 'kubelet'; readonly host: string };
  /** RFC 3339. */
  readonly firstTimestamp: string;
  readonly lastTimestamp: string;
  /** How often it happened between the two. */
  readonly count: number;
}

export interface EventLogOptions {
  nodeName: string;
  clock: Clock;
  log: Logger;
  /** Where events are appended as JSON lines; without it they are kept in memory only. */
  file?: string;
  /** Distinct events kept in memory. */
  capacity?: number;
  /** Size at which the file is set aside as `<file>.1`. */
  maxFileBytes?: number;
}

/** Time from an event to its line in the file, milliseconds. */
const flushDelay = 1000;

/** Longest message kept, as the API server limits it. */
const maxMessage = 1024;

/** Keeps the last events in memory and in a bounded file; the same event again is counted, not repeated. */
export class EventLog implements EventRecorder {
  readonly #options: EventLogOptions;
  readonly #capacity: number;
  readonly #file: RotatedLines | undefined;
  /** By identity; the order is that of the last occurrence. */
  readonly #events = new Map<string, RecordedEvent>();
  /** Identities that changed since the last flush. */
  readonly #unwritten = new Set<string>();
  #cancelFlush: (() => void) | undefined;
  #writing: Promise<void> = Promise.resolve();
  #fileFailed = false;
  #recorded = 0;

  constructor(options: EventLogOptions) {
    this.#options = options;
    this.#capacity = options.capacity ?? 1000;
    if (options.file !== undefined) {
      this.#file = new RotatedLines(options.file, options.maxFileBytes ?? 4 * 1024 * 1024);
    }
  }

  event(object: EventObject, type: 'Normal' | 'Warning', reason: string, text: string): void {
    const message = text.length > maxMessage ? `${text.slice(0, maxMessage - 3)}...` : text;
    const { kind, namespace = '', name, uid = '', fieldPath = '' } = object;
    const key = [kind, namespace, name, uid, fieldPath, type, reason, message].join('\0');
    const now = this.#options.clock.now();
    const at = new Date(now).toISOString().replace(/\.\d+Z$/, 'Z');
    const before = this.#events.get(key);
    // Deleted and set again, so that the map stays in order of the last occurrence.
    this.#events.delete(key);
    this.#events.set(key, {
      kind: 'Event',
      apiVersion: 'v1',
      metadata: before?.metadata ?? {
        name: `${name}.${this.#uniqueTime(now).toString(16)}`,
        // Events of objects without a namespace live in this one.
        namespace: namespace === '' ? 'default' : namespace,
      },
      involvedObject: { ...object, apiVersion: 'v1' },
      type,
      reason,
      message,
      source: { component: 'kubelet', host: this.#options.nodeName },
      firstTimestamp: before?.firstTimestamp ?? at,
      lastTimestamp: at,
      count: (before?.count ?? 0) + 1,
    });
    this.#forgetOldest();
    this.#log(object, type, reason, message);
    if (this.#file === undefined) return;
    this.#unwritten.add(key);
    this.#cancelFlush ??= this.#options.clock.after(flushDelay, () => void this.flush());
  }

  /** Events in the order of their last occurrence, newest last; of one object when its uid or name is given. */
  list(filter: { uid?: string; kind?: string; namespace?: string; name?: string } = {}): RecordedEvent[] {
    return [...this.#events.values()].filter(({ involvedObject: object }) =>
      (['uid', 'kind', 'namespace', 'name'] as const).every(
        (key) => filter[key] === undefined || filter[key] === object[key],
      ),
    );
  }

  /** Writes what is not in the file yet; resolves when it is there or has failed, which is logged once. */
  flush(): Promise<void> {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  async #write(): Promise<void> {
    let lines = '';
    for (const key of this.#unwritten) {
      const event = this.#events.get(key);
      if (event !== undefined) lines += `${JSON.stringify(event)}\n`;
    }
    this.#unwritten.clear();
    if (lines === '') return;
    try {
      await this.#file?.append(lines);
      this.#fileFailed = false;
    } catch (error) {
      const { file, log } = this.#options;
      if (!this.#fileFailed)
        log.error('Cannot write the event file; events are in memory only', error, { file });
      this.#fileFailed = true;
    }
  }

  /** Nanoseconds since the epoch, never the same twice: an event's name ends with it. */
  #uniqueTime(now: number): bigint {
    this.#recorded = (this.#recorded + 1) % 1_000_000;
    return BigInt(Math.floor(now)) * 1_000_000n + BigInt(this.#recorded);
  }

  #forgetOldest(): void {
    for (const key of this.#events.keys()) {
      if (this.#events.size <= this.#capacity) return;
      this.#events.delete(key);
    }
  }

  /** Differs from the kubelet, which logs events at verbosity 3: here the log may be all there is. */
  #log(object: EventObject, type: string, reason: string, message: string): void {
    this.#options.log.info('Event occurred', {
      object: object.namespace ? `${object.namespace}/${object.name}` : object.name,
      fieldPath: object.fieldPath ?? '',
      kind: object.kind,
      apiVersion: 'v1',
      type,
      reason,
      message,
    });
  }
}
