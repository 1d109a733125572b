/** Executors for containers: making, starting, stopping and removing one instance. */
import { containerHash } from '../../kubernetes/hash.ts';
import { type ContainerPlace, findContainer } from '../../kubernetes/init-containers.ts';
import type { ObservedContainer, ObservedPod } from '../../runtime/observed-pod.ts';
import { isNotFound } from '../../runtime/runtime-call-error.ts';
import { ContainerConfigError } from '../../runtime/translation/container-config-error.ts';
import { podEventObject } from '../../telemetry/events.ts';
import { newestInstance } from '../instances.ts';
import type { ActionContext } from '../pod-worker-ports.ts';
import type { Outcome } from '../remember.ts';
import type { Executor } from './executor.ts';
import { failed } from './failure.ts';
import { callPriority, type PodServices } from './pod-services.ts';
import { runPostStart } from './run-post-start.ts';
import { seeEffect } from './see-effect.ts';

/** CreateContainer; what was made is known without asking. */
export const createContainer: Executor<'create-container'> = async (action, context, services) => {
  const { pod, observed, signal } = context;
  const { runtime, observer, configs, calls, clock } = services;
  const place = findContainer(pod.spec, action.container);
  const sandbox = observed.sandboxes.find(({ id }) => id === action.sandboxId);
  if (!place || !sandbox) return failed('InternalError', `container ${action.container} has lost its place`);
  try {
    const { attempt, imageRef, nextBackoffMs } = action;
    const targetId = targetOf(place, observed);
    const [config, sandboxConfig] = await Promise.all([
      configs.container({ pod, place, attempt, sandbox, imageRef, nextBackoffMs, targetId, signal }),
      configs.sandbox(pod, sandbox.attempt),
    ]);
    const request = { podSandboxId: sandbox.id, config, sandboxConfig };
    const { containerId } = await calls.run(() => runtime.createContainer(request, { signal }), {
      priority: callPriority.create,
      signal,
    });
    services.events.event(podEventObject(pod, place.fieldPath), 'Normal', 'Created', 'Container created');
    observer.learnContainer(pod.metadata.uid, {
      id: containerId,
      name: action.container,
      sandboxId: sandbox.id,
      attempt,
      state: 'Created',
      createdAt: clock.now(),
      image: place.container.image ?? '',
      imageId: imageRef,
      hash: containerHash(place.container),
      annotations: config.annotations,
    });
    return { ok: true };
  } catch (error) {
    const reason =
      error instanceof ContainerConfigError ? 'CreateContainerConfigError' : 'CreateContainerError';
    return await failedStart(services, context, place, { reason, error });
  }
};

/** Runtime id of the container whose processes an ephemeral container wants to see. */
function targetOf({ container }: ContainerPlace, observed: ObservedPod): string | undefined {
  const name = 'targetContainerName' in container ? container.targetContainerName : undefined;
  if (!name) return undefined;
  const target = newestInstance(observed, name);
  if (!target) throw new ContainerConfigError(`unable to find target container ${name}`);
  return target.id;
}

/** StartContainer, then the postStart hook. A start that has succeeded stays so, whatever follows. */
export const startContainer: Executor<'start-container'> = async (action, context, services) => {
  const { pod, observed, signal } = context;
  const { runtime, observer, calls, files, logger } = services;
  const place = findContainer(pod.spec, action.container);
  const attempt = observed.containers.find(({ id }) => id === action.containerId)?.attempt ?? 0;
  if (!place) return failed('InternalError', `container ${action.container} has lost its place`);
  // Linked first: were the agent killed after the start, nobody would ever link it.
  await files.linkLog(pod, action.container, action.containerId, attempt).catch((error: unknown) => {
    logger.error('Linking the log of a container failed; log collectors will not find it', error, {
      podUID: pod.metadata.uid,
      containerName: action.container,
    });
  });
  try {
    await calls
      .run(() => runtime.startContainer({ containerId: action.containerId }, { signal }), {
        priority: callPriority.start,
        signal,
      })
      .catch(async (error: unknown) => {
        // The answer may have been lost while the work was done; the runtime knows.
        await observer.refreshContainer(action.containerId).catch(() => {});
        if (stateOf(action.containerId, context, services) !== 'Running') throw error;
      });
    services.events.event(podEventObject(pod, place.fieldPath), 'Normal', 'Started', 'Container started');
  } catch (error) {
    return await failedStart(services, context, place, { reason: 'RunContainerError', error });
  }
  const { containerId } = action;
  await seeEffect(
    {
      refresh: (until) => observer.refreshContainer(containerId, { signal: until }),
      isKnown: () => stateOf(containerId, context, services) !== 'Created',
    },
    services,
    signal,
  );
  if (!place.container.lifecycle?.postStart) return { ok: true };
  return await runPostStart({ place, containerId, context, services });
};

/** What is known of the instance now; `undefined` when the runtime has it no more. */
function stateOf(
  containerId: string,
  { pod }: ActionContext,
  { observer }: PodServices,
): ObservedContainer['state'] | undefined {
  return observer.pod(pod.metadata.uid).containers.find(({ id }) => id === containerId)?.state;
}

/** StopContainer: TERM, and KILL after the grace period. What is not there has been stopped. */
export const stopContainer: Executor<'stop-container'> = async (action, context, services) => {
  const { pod, signal } = context;
  const { runtime, observer } = services;
  const { containerId, graceSeconds } = action;
  const place = findContainer(pod.spec, action.container);
  const hookRan = context.memory.preStopBegan[containerId] !== undefined;
  if (!hookRan)
    services.events.event(podEventObject(pod, place?.fieldPath), 'Normal', 'Killing', action.reason);
  try {
    // Mostly waiting for the process, not work for the runtime: no place in the limit is taken.
    await runtime.stopContainer({ containerId, timeout: BigInt(graceSeconds) }, { signal });
  } catch (error) {
    if (isNotFound(error)) {
      observer.removedContainer(containerId);
      return { ok: true };
    }
    await observer.refreshContainer(containerId).catch(() => {});
    const message = `error killing pod: ${(error as Error).message}`;
    if (!signal.aborted) services.events.event(podEventObject(pod), 'Warning', 'FailedKillPod', message);
    return failed('FailedKillPod', error);
  }
  await seeEffect(
    {
      refresh: (until) => observer.refreshContainer(containerId, { signal: until }),
      isKnown: () => [undefined, 'Exited'].includes(stateOf(containerId, context, services)),
    },
    services,
    signal,
  );
  return { ok: true };
};

/** RemoveContainer, then its log and the link to it. */
export const removeContainer: Executor<'remove-container'> = async (action, context, services) => {
  const { pod, observed, signal } = context;
  const { runtime, observer, calls, files } = services;
  const { container, containerId, keepsLog } = action;
  const attempt = observed.containers.find(({ id }) => id === containerId)?.attempt ?? 0;
  try {
    await calls.run(() => runtime.removeContainer({ containerId }, { signal }), {
      priority: callPriority.remove,
      signal,
    });
  } catch (error) {
    if (!isNotFound(error)) return failed('FailedRemoveContainer', error);
  }
  try {
    // Of a container whose log stays, the log before it goes, so that they do not pile up.
    await files.removeInstance(pod, container, containerId, keepsLog ? attempt - 1 : attempt);
  } catch (error) {
    return failed('FailedRemoveContainer', error);
  }
  observer.removedContainer(containerId);
  return { ok: true };
};

/** Tells why a container does not come up, and looks whether it came up after all. */
async function failedStart(
  { events, observer }: PodServices,
  { pod, signal }: ActionContext,
  place: ContainerPlace,
  { reason, error }: { reason: string; error: unknown },
): Promise<Outcome> {
  // The answer may have been lost while the work was done; the runtime knows.
  await observer.refreshPod(pod.metadata.uid).catch(() => {});
  if (!signal.aborted) {
    const message = `Error: ${(error as Error).message}`;
    events.event(podEventObject(pod, place.fieldPath), 'Warning', 'Failed', message);
  }
  return failed(reason, error);
}
