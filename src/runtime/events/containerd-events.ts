/**
 * Events from containerd's own event service, which every version of it serves beside CRI. It tells exits of
 * containers and sandboxes within milliseconds, and memory kills, which CRI cannot tell.
 */
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
import { type EventStreamOptions, eventStreamSource } from './event-stream.ts';

/** containerd's namespace (not Kubernetes') in which its CRI plugin keeps everything. */
const criNamespace = 'k8s.io';

export interface ContainerdEventsOptions extends EventStreamOptions {
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
  const { namespace = criNamespace, ...stream } = options;
  const filters = Object.keys(topics).map((topic) => `namespace=="${namespace}",topic=="${topic}"`);
  const call = {
    service: EventsDefinition.fullName,
    method: EventsDefinition.methods.subscribe,
    request: { filters },
    subject: 'container events',
  };
  return eventStreamSource({ ...stream, name: 'containerd', call, translate: translateEnvelope });
}

/** The event that an envelope tells; undefined for what does not matter. */
export function translateEnvelope({ topic, event }: Envelope): RuntimeEvent | undefined {
  return event && topics[topic]?.(event.value);
}
