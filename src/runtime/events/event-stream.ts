/**
 * Keeps one event stream of a runtime running: connects, subscribes, and when the stream breaks does so again
 * with a back-off of 100 ms to 5 s. After each subscription it says `gap`, at once and once more shortly
 * after: neither service tells when a subscription is in force, so that what happens in its first moments may
 * be missed.
 */
import { type Clock, sleep } from '../../concurrency/clock.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { GrpcCall, GrpcConnection } from '../cri/grpc-connection.ts';
import { RuntimeCallError } from '../runtime-call-error.ts';
import type { RuntimeEvent, RuntimeEventSource } from '../runtime-event.ts';
import type { EventStreamMetrics } from './event-stream-metrics.ts';

const firstWaitMs = 100;
const longestWaitMs = 5000;
/** How long after subscribing everything is looked at once more. */
const settleMs = 500;

/** What every event stream needs of the agent. */
export interface EventStreamOptions {
  readonly connection: GrpcConnection;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: EventStreamMetrics;
}

/** One way to hear of what happens in a runtime. */
export interface EventStream<Request, Message> extends EventStreamOptions {
  readonly name: RuntimeEventSource['name'];
  readonly call: Omit<GrpcCall<Request, Message>, 'signal'>;
  /** The event that a message tells, if it tells one that matters. */
  readonly translate: (message: Message) => RuntimeEvent | undefined;
}

/** The stream as a source that tells of every exit while it flows. */
export function eventStreamSource<Request, Message>(
  stream: EventStream<Request, Message>,
): RuntimeEventSource {
  return {
    name: stream.name,
    flowing: true,
    run: (listener, signal) => runEventStream(stream, listener, signal),
  };
}

/**
 * Runs until `signal` aborts. Rejects only when the runtime does not know the call, with the
 * `RuntimeCallError` that says so.
 */
export async function runEventStream<Request, Message>(
  stream: EventStream<Request, Message>,
  listener: (event: RuntimeEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  const { name, connection, call, translate, clock, logger, metrics } = stream;
  let wait = firstWaitMs;
  while (!signal.aborted) {
    const began = clock.now();
    let isListening = false;
    const listening = (): void => {
      if (!isListening) metrics.listening();
      isListening = true;
    };
    try {
      await connection.ready(signal);
      metrics.connected(clock.now() - began);
      const cancelSecondGap = clock.after(settleMs, () => {
        wait = firstWaitMs;
        listening();
        listener({ kind: 'gap' });
      });
      listener({ kind: 'gap' });
      try {
        await connection.stream({ ...call, signal }, (message) => {
          listening();
          const event = translate(message);
          if (event) listener(event);
        });
      } finally {
        cancelSecondGap();
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof RuntimeCallError && error.unimplemented) throw error;
      metrics.broke();
      logger.v(2, 'Event stream of the runtime broke, connecting again', {
        stream: name,
        err: String(error),
      });
    }
    await sleep(clock, wait, signal).catch(() => {});
    wait = Math.min(2 * wait, longestWaitMs);
  }
}
