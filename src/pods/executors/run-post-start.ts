import type { ContainerPlace } from '../../kubernetes/init-containers.ts';
import { podEventObject } from '../../telemetry/events.ts';
import { runLifecycleHook } from '../hooks/lifecycle-hook.ts';
import { newestSandbox } from '../instances.ts';
import type { ActionContext } from '../pod-worker-ports.ts';
import type { Outcome } from '../remember.ts';
import { failed } from './failure.ts';
import type { PodServices } from './pod-services.ts';
import { httpFallbackMessage } from './run-pre-stop.ts';

/** A container that has just started, and all its hook needs. */
export interface PostStart {
  readonly place: ContainerPlace;
  readonly containerId: string;
  readonly context: ActionContext;
  readonly services: PodServices;
}

/** Runs the postStart hook of a container that has just started; a container whose hook fails is stopped. */
export async function runPostStart({ place, containerId, context, services }: PostStart): Promise<Outcome> {
  const { pod, observed, signal } = context;
  const { runtime, events, observer } = services;
  const object = podEventObject(pod, place.fieldPath);
  try {
    await runLifecycleHook(
      {
        handler: place.container.lifecycle?.postStart ?? {},
        container: place.container,
        containerId,
        podIp: newestSandbox(observed)?.ips[0],
        timeoutSeconds: 0,
        signal,
        onHttpFallback: (host) =>
          events.event(object, 'Warning', 'LifecycleHTTPFallback', httpFallbackMessage(host)),
      },
      services,
    );
    return { ok: true };
  } catch (error) {
    if (signal.aborted) return failed('PostStartHookError', error);
    events.event(object, 'Warning', 'FailedPostStartHook', 'PostStartHook failed');
    events.event(object, 'Normal', 'Killing', 'FailedPostStartHook');
    const timeout = BigInt(Math.max(2, pod.spec.terminationGracePeriodSeconds));
    await runtime.stopContainer({ containerId, timeout }, { signal }).catch(() => {});
    await observer.refreshContainer(containerId).catch(() => {});
    return failed('PostStartHookError', error);
  }
}
