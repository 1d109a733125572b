/** Builds what leads streams into containers. */
import type { Clock } from '../concurrency/clock.ts';
import { findContainer } from '../kubernetes/init-containers.ts';
import { newestInstance, newestSandbox } from '../pods/instances.ts';
import type { PodWorkers } from '../pods/pod-workers.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';
import { RuntimeCallError, RuntimeErrorCode } from '../runtime/runtime-call-error.ts';
import type { RuntimeObserver } from '../runtime/runtime-observer.ts';
import type { NodeRoute } from '../server/route.ts';
import { StreamRefusal } from '../server/streaming/stream-request.ts';
import {
  type StreamedPod,
  type StreamRuntime,
  streamingRoutes,
} from '../server/streaming/streaming-routes.ts';

export interface StreamingRooms {
  readonly runtime: ContainerRuntime;
  readonly observer: RuntimeObserver;
  /** Undefined until there are any. */
  readonly workers: () => PodWorkers | undefined;
  readonly idleMs: number;
  /** The gate ExtendWebSocketsToKubelet. */
  readonly translates: boolean;
  readonly clock: Clock;
}

export function buildStreamingRoutes(rooms: StreamingRooms): NodeRoute[] {
  const { runtime, idleMs, translates, clock } = rooms;
  return streamingRoutes({
    pod: (namespace, name) => streamedPod(`${namespace}/${name}`, rooms),
    runtime: streamRuntime(runtime),
    idleMs,
    translates,
    clock,
  });
}

function streamedPod(key: string, { workers, observer }: StreamingRooms): StreamedPod | undefined {
  const pod = workers()?.named(key)?.pod;
  if (!pod) return undefined;
  const { uid } = pod.metadata;
  return {
    uid,
    running(container) {
      const newest = newestInstance(observer.pod(uid), container);
      return newest?.state === 'Running' ? newest.id : undefined;
    },
    hasTerminal(container) {
      const place = findContainer(pod.spec, container);
      return place && place.container.tty === true;
    },
    sandbox() {
      const newest = newestSandbox(observer.pod(uid));
      return newest?.state === 'Ready' ? newest.id : undefined;
    },
  };
}

function streamRuntime(runtime: ContainerRuntime): StreamRuntime {
  return {
    exec: ({ command, ...request }, signal) =>
      urlOf(runtime.exec({ ...request, cmd: [...command] }, { signal })),
    attach: (request, signal) => urlOf(runtime.attach(request, { signal })),
    portForward: ({ sandboxId, ports }, signal) =>
      urlOf(runtime.portForward({ podSandboxId: sandboxId, port: [...ports] }, { signal })),
    async run({ containerId, command }, signal) {
      const cmd = [...command];
      const request = { containerId, cmd, timeout: 0n };
      const { stdout, stderr, exitCode } = await runtime
        .execSync(request, { signal, timeoutMs: Number.POSITIVE_INFINITY })
        .catch(refuse);
      if (exitCode === 0) return Buffer.concat([stdout, stderr]);
      const text = `command '${cmd.join(' ')}' exited with ${exitCode}: ${Buffer.from(stderr).toString()}`;
      throw new StreamRefusal(500, text);
    },
  };
}

async function urlOf(call: Promise<{ url: string }>): Promise<string> {
  return (await call.catch(refuse)).url;
}

/** What the runtime says of a container or of itself is for the client to read. */
function refuse(error: unknown): never {
  if (!(error instanceof RuntimeCallError)) throw error;
  const status =
    error.code === RuntimeErrorCode.NotFound
      ? 404
      : error.code === RuntimeErrorCode.ResourceExhausted
        ? 429
        : 500;
  throw new StreamRefusal(status, error.message, { cause: error });
}
