/**
 * Chooses where a runtime's events come from: containerd's own service when it is containerd, else CRI's; when
 * it has neither, none, and exits are seen by relist only. A runtime that comes back may be another version,
 * so that the choice is made anew then.
 */
import type { Clock } from '../../concurrency/clock.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { GrpcConnection } from '../cri/grpc-connection.ts';
import { RuntimeCallError } from '../runtime-call-error.ts';
import type { RuntimeEventSource } from '../runtime-event.ts';
import { containerdEvents } from './containerd-events.ts';
import { criEvents } from './cri-events.ts';
import { EventStreamMetrics } from './event-stream-metrics.ts';

export interface RuntimeEventSourceOptions {
  /** The name that the runtime gives itself: `containerd`, `cri-o`. */
  readonly runtimeName: string;
  readonly connection: GrpcConnection;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** containerd's namespace of CRI containers; `k8s.io` by default. */
  readonly containerdNamespace?: string;
}

/** The best stream of events that this runtime offers; it finds out by trying. */
export function runtimeEventSource(options: RuntimeEventSourceOptions): RuntimeEventSource {
  const { runtimeName, connection, clock, logger, containerdNamespace: namespace } = options;
  const shared = { connection, clock, logger, metrics: new EventStreamMetrics(options.metrics) };
  const candidates =
    runtimeName === 'containerd'
      ? [containerdEvents({ ...shared, ...(namespace && { namespace }) }), criEvents(shared)]
      : [criEvents(shared)];
  let flowing = true;
  return {
    name: candidates[0]?.name ?? 'none',
    get flowing() {
      return flowing;
    },
    async run(listener, signal) {
      while (!signal.aborted) {
        flowing = true;
        for (const source of candidates) {
          try {
            logger.v(2, 'Listening to events of the runtime', { stream: source.name });
            await source.run(listener, signal);
            return;
          } catch (error) {
            if (!(error instanceof RuntimeCallError) || !error.unimplemented) throw error;
          }
        }
        logger.warn('The runtime has no event stream; exits are noticed by relisting only', { runtimeName });
        flowing = false;
        listener({ kind: 'gap' });
        await reconnected(connection, signal);
      }
    },
  };
}

function reconnected(connection: GrpcConnection, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      stop();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const stop = connection.onReconnect(done);
    signal.addEventListener('abort', done, { once: true });
  });
}
