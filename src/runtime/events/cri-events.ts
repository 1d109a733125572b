/** Events from CRI's own `GetContainerEvents`, for runtimes that have it (CRI-O, newer containerd). */
import type { ContainerEventResponse } from '../generated/cri.ts';
import { ContainerEventType, RuntimeServiceDefinition } from '../generated/cri.ts';
import type { RuntimeEvent, RuntimeEventSource } from '../runtime-event.ts';
import { type EventStreamOptions, eventStreamSource } from './event-stream.ts';

/** `GetContainerEvents` of CRI, where the runtime has it. */
export function criEvents(options: EventStreamOptions): RuntimeEventSource {
  const call = {
    service: RuntimeServiceDefinition.fullName,
    method: RuntimeServiceDefinition.methods.getContainerEvents,
    request: {},
    subject: 'container events',
  };
  return eventStreamSource({ ...options, name: 'cri', call, translate: translateCriEvent });
}

function translateCriEvent(event: ContainerEventResponse): RuntimeEvent {
  const { containerId: id, containerEventType, podSandboxStatus } = event;
  if (containerEventType === ContainerEventType.CONTAINER_STOPPED_EVENT) return { kind: 'exited', id };
  const podUid = podSandboxStatus?.metadata?.uid;
  return { kind: 'changed', id, ...(podUid && { podUid }) };
}
