/** Executors for sandboxes: the network and the namespaces a pod's containers share. */

import type { ObservedSandbox } from '../../runtime/observed-pod.ts';
import { isNotFound } from '../../runtime/runtime-call-error.ts';
import { podEventObject } from '../../telemetry/events.ts';
import { newestSandbox } from '../instances.ts';
import type { ActionContext } from '../pod-worker-ports.ts';
import { sandboxConfigError } from '../remember.ts';
import type { Executor } from './executor.ts';
import { failed } from './failure.ts';
import { callPriority, type PodServices } from './pod-services.ts';
import { seeEffect } from './see-effect.ts';

/**
 * Tells that the pod waits for its network, at each attempt as Kubernetes does.
 *
 * Differs from the kubelet in when that is: not every second but after growing delays, since a network that
 * gets ready is noticed without them.
 */
export const awaitNetwork: Executor<'await-network'> = async ({ problem }, { pod }, { events }) => {
  const message = `network is not ready: ${problem}`;
  events.event(podEventObject(pod), 'Warning', 'NetworkNotReady', message);
  return failed('NetworkNotReady', message);
};

/** RunPodSandbox, and a look at what it made. */
export const createSandbox: Executor<'create-sandbox'> = async (action, context, services) => {
  const { pod, observed, signal } = context;
  const { runtime, observer, configs, calls, events } = services;
  if (newestSandbox(observed)) {
    const message = 'Pod sandbox changed, it will be killed and re-created.';
    events.event(podEventObject(pod), 'Normal', 'SandboxChanged', message);
  }
  let podSandboxId: string;
  let reason: string = sandboxConfigError;
  try {
    const config = await configs.sandbox(pod, action.attempt);
    const request = { config, runtimeHandler: await configs.runtimeHandler(pod) };
    reason = 'FailedCreatePodSandBox';
    ({ podSandboxId } = await calls.run(() => runtime.runPodSandbox(request, { signal }), {
      priority: callPriority.sandbox,
      signal,
    }));
  } catch (error) {
    // The answer may have been lost while the work was done; the runtime knows.
    await observer.refreshPod(pod.metadata.uid).catch(() => {});
    if (!signal.aborted) {
      const message = `Failed to create pod sandbox: ${(error as Error).message}`;
      events.event(podEventObject(pod), 'Warning', 'FailedCreatePodSandBox', message);
    }
    return failed(reason, error);
  }
  await seeEffect(
    {
      refresh: (until) => observer.refreshSandbox(podSandboxId, until),
      isKnown: () => sandboxState(podSandboxId, context, services) !== undefined,
    },
    services,
    signal,
  );
  return { ok: true };
};

/** What is known of the sandbox now; `undefined` when the runtime does not show it. */
function sandboxState(
  sandboxId: string,
  { pod }: Pick<ActionContext, 'pod'>,
  { observer }: PodServices,
): ObservedSandbox['state'] | undefined {
  return observer.pod(pod.metadata.uid).sandboxes.find(({ id }) => id === sandboxId)?.state;
}

/** StopPodSandbox: the network goes. What is not there has been stopped. */
export const stopSandbox: Executor<'stop-sandbox'> = async ({ sandboxId }, { pod, signal }, services) => {
  const { runtime, observer, calls, events } = services;
  try {
    await calls.run(() => runtime.stopPodSandbox({ podSandboxId: sandboxId }, { signal }), {
      priority: callPriority.stop,
      signal,
    });
  } catch (error) {
    if (isNotFound(error)) {
      observer.removedSandbox(sandboxId);
      return { ok: true };
    }
    const message = `error killing pod: ${(error as Error).message}`;
    if (!signal.aborted) events.event(podEventObject(pod), 'Warning', 'FailedKillPod', message);
    return failed('FailedKillPod', error);
  }
  await seeEffect(
    {
      refresh: (until) => observer.refreshSandbox(sandboxId, until),
      isKnown: () => sandboxState(sandboxId, { pod }, services) !== 'Ready',
    },
    services,
    signal,
  );
  return { ok: true };
};

/** RemovePodSandbox, with every container in it. */
export const removeSandbox: Executor<'remove-sandbox'> = async ({ sandboxId }, { signal }, services) => {
  const { runtime, observer, calls } = services;
  try {
    await calls.run(() => runtime.removePodSandbox({ podSandboxId: sandboxId }, { signal }), {
      priority: callPriority.remove,
      signal,
    });
  } catch (error) {
    if (!isNotFound(error)) return failed('FailedRemovePodSandbox', error);
  }
  observer.removedSandbox(sandboxId);
  return { ok: true };
};
