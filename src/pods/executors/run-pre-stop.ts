import { findContainer } from '../../kubernetes/init-containers.ts';
import { podEventObject } from '../../telemetry/events.ts';
import { runLifecycleHook } from '../hooks/lifecycle-hook.ts';
import { newestSandbox } from '../instances.ts';
import { preStopHandler } from '../plan-stop.ts';
import type { Executor } from './executor.ts';

/**
 * Runs the preStop hook of a container for as long as the grace period lasts. A hook that fails or takes
 * too long is told in an event and holds nothing up: the container is stopped all the same.
 */
export const runPreStop: Executor<'run-pre-stop'> = async (action, { pod, observed, signal }, services) => {
  const { clock, events } = services;
  const container = observed.containers.find(({ id }) => id === action.containerId);
  const handler = container && preStopHandler(pod, container);
  const place = findContainer(pod.spec, action.container);
  const object = podEventObject(pod, place?.fieldPath);
  const preStopBegan = clock.now();
  events.event(object, 'Normal', 'Killing', action.reason);
  if (!handler) return { ok: true, learned: { preStopBegan } };

  const overrun = new AbortController();
  const cancel = clock.after(action.graceSeconds * 1000, () =>
    overrun.abort(new Error('the grace period is over')),
  );
  try {
    await runLifecycleHook(
      {
        handler,
        container: place?.container ?? { name: action.container },
        containerId: action.containerId,
        podIp: newestSandbox(observed)?.ips[0],
        timeoutSeconds: action.graceSeconds,
        signal: AbortSignal.any([signal, overrun.signal]),
        onHttpFallback: (host) =>
          events.event(object, 'Warning', 'LifecycleHTTPFallback', httpFallbackMessage(host)),
      },
      services,
    );
  } catch (error) {
    // Aborted because the container has ended, or a shorter grace period came: nothing to complain about.
    if (!signal.aborted) {
      events.event(object, 'Warning', 'FailedPreStopHook', 'PreStopHook failed');
      services.logger.warn('A preStop hook failed', {
        podUID: pod.metadata.uid,
        containerName: action.container,
        error: (error as Error).message,
      });
    }
  } finally {
    cancel();
  }
  return { ok: true, learned: { preStopBegan } };
};

/** Message of the event LifecycleHTTPFallback. */
export function httpFallbackMessage(host: string): string {
  return `request to HTTPS lifecycle hook ${host} got HTTP response, retry with HTTP succeeded`;
}
