/** Executors for sandboxes: the network and the namespaces a pod's containers share. */
import { isNotFound } from '../../runtime/runtime-call-error.ts';
import { podEventObject } from '../../telemetry/events.ts';
import { newestSandbox } from '../instances.ts';
import type { Executor } from './executors.ts';
import { failed } from './failure.ts';
import { callPriority } from './pod-services.ts';

export const createSandbox: Executor<'create-sandbox'> = async (action, context, services) => {
  const { pod, observed, signal } = context;
  const { runtime, observer, configs, calls, events } = services;
  if (newestSandbox(observed)) {
    const message = 'Pod sandbox changed, it will be killed and re-created.';
    events.event(podEventObject(pod), 'Normal', 'SandboxChanged', message);
  }
  try {
    const config = await configs.sandbox(pod, action.attempt);
    const request = { config, runtimeHandler: configs.runtimeHandler(pod) };
    const { podSandboxId } = await calls.run(() => runtime.runPodSandbox(request, { signal }), {
      priority: callPriority.sandbox,
      signal,
    });
    await observer.refreshSandbox(podSandboxId, signal);
    return { ok: true };
  } catch (error) {
    // The answer may have been lost while the work was done; the runtime knows.
    await observer.refreshPod(pod.metadata.uid).catch(() => {});
    if (!signal.aborted) {
      const message = `Failed to create pod sandbox: ${(error as Error).message}`;
      events.event(podEventObject(pod), 'Warning', 'FailedCreatePodSandBox', message);
    }
    return failed('FailedCreatePodSandBox', error);
  }
};

export const stopSandbox: Executor<'stop-sandbox'> = async ({ sandboxId }, { pod, signal }, services) => {
  const { runtime, observer, calls, events } = services;
  try {
    await calls.run(() => runtime.stopPodSandbox({ podSandboxId: sandboxId }, { signal }), {
      priority: callPriority.stop,
      signal,
    });
    await observer.refreshSandbox(sandboxId, signal);
    return { ok: true };
  } catch (error) {
    if (isNotFound(error)) {
      observer.removedSandbox(sandboxId);
      return { ok: true };
    }
    const message = `error killing pod: ${(error as Error).message}`;
    if (!signal.aborted) events.event(podEventObject(pod), 'Warning', 'FailedKillPod', message);
    return failed('FailedKillPod', error);
  }
};

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
