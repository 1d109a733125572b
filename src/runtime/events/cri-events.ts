/** Events from CRI's own `GetContainerEvents`, for runtimes that have it (CRI-O, newer containerd). */
import type { Clock } from '../../concurrency/clock.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { GrpcConnection } from '../cri/grpc-connection.ts';
import type { ContainerEventResponse } from '../generated/cri.ts';
import { ContainerEventType, RuntimeServiceDefinition } from '../generated/cri.ts';
import type { RuntimeEvent, RuntimeEventSource } from '../runtime-event.ts';
import { runEventStream } from './event-stream.ts';
import type { EventStreamMetrics } from './event-stream-metrics.ts';

export interface CriEventsOptions {
  readonly connection: GrpcConnection;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: EventStreamMetrics;
}

/** `GetContainerEvents` of CRI, where the runtime has it. */
export function criEvents({ connection, clock, logger, metrics }: CriEventsOptions): RuntimeEventSource {
  const call = {
    service: RuntimeServiceDefinition.fullName,
    method: RuntimeServiceDefinition.methods.getContainerEvents,
    request: {},
    subject: 'container events',
  };
  return {
    name: 'cri',
    flowing: true,
    run: (listener, signal) =>
      runEventStream(
        { name: 'cri', connection, call, translate: translateCriEvent, clock, logger, metrics },
        listener,
        signal,
      ),
  };
}

function translateCriEvent(event: ContainerEventResponse): RuntimeEvent {
  const { containerId: id, containerEventType, podSandboxStatus } = event;
  if (containerEventType === ContainerEventType.CONTAINER_STOPPED_EVENT) return { kind: 'exited', id };
  const podUid = podSandboxStatus?.metadata?.uid;
  return { kind: 'changed', id, ...(podUid && { podUid }) };
}
