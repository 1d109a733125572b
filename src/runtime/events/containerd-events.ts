/**
 * Events from containerd's own event service, which every version of it serves beside CRI. It tells exits of
 * containers and sandboxes within milliseconds, and memory kills, which CRI cannot tell.
 */

import type { Clock } from '../../concurrency/clock.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { GrpcConnection } from '../cri/grpc-connection.ts';
import type { Envelope } from '../generated/containerd-events.ts';
import {
  ContainerCreate,
  ContainerDelete,
  EventsDefinition,
  TaskDelete,
  TaskExit,
  TaskOOM,
  TaskStart,
} from '../generated/containerd-events.ts';
import type { RuntimeEvent, RuntimeEventSource } from '../runtime-event.ts';
import { runEventStream } from './event-stream.ts';
import type { EventStreamMetrics } from './event-stream-metrics.ts';

/** containerd's namespace (not Kubernetes') in which its CRI plugin keeps everything. */
const criNamespace = 'k8s.io';

export interface ContainerdEventsOptions {
  readonly connection: GrpcConnection;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: EventStreamMetrics;
  /** containerd's namespace to listen to; `k8s.io` by default. */
  readonly namespace?: string;
}

/** What each topic tells; only these are subscribed to. */
const topics: Readonly<Record<string, (payload: Uint8Array) => RuntimeEvent | undefined>> = {
  '/tasks/exit'(payload) {
    const { containerId, id } = TaskExit.decode(payload);
    // The end of a command run inside a container (a probe, `kubectl exec`) is no news of the container.
    return id === containerId ? { kind: 'exited', id: containerId } : undefined;
  },
  '/tasks/oom': (payload) => ({ kind: 'oom', id: TaskOOM.decode(payload).containerId }),
  '/tasks/start': (payload) => ({ kind: 'changed', id: TaskStart.decode(payload).containerId }),
  '/tasks/delete'(payload) {
    const { containerId, id } = TaskDelete.decode(payload);
    return id === '' || id === containerId ? { kind: 'changed', id: containerId } : undefined;
  },
  '/containers/create': (payload) => ({ kind: 'changed', id: ContainerCreate.decode(payload).id }),
  '/containers/delete': (payload) => ({ kind: 'changed', id: ContainerDelete.decode(payload).id }),
};

/** containerd's own event service on the socket of CRI, which every version of containerd has. */
export function containerdEvents(options: ContainerdEventsOptions): RuntimeEventSource {
  const { connection, clock, logger, metrics, namespace = criNamespace } = options;
  const filters = Object.keys(topics).map((topic) => `namespace=="${namespace}",topic=="${topic}"`);
  const call = {
    service: EventsDefinition.fullName,
    method: EventsDefinition.methods.subscribe,
    request: { filters },
    subject: 'container events',
  };
  return {
    name: 'containerd',
    flowing: true,
    run: (listener, signal) =>
      runEventStream(
        { name: 'containerd', connection, call, translate: translateEnvelope, clock, logger, metrics },
        listener,
        signal,
      ),
  };
}

/** The event that an envelope tells; undefined for what does not matter. */
export function translateEnvelope({ topic, event }: Envelope): RuntimeEvent | undefined {
  return event && topics[topic]?.(event.value);
}
