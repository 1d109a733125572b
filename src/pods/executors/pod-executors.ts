/** Executors for what surrounds the containers of a pod: its record, directories, cgroup and volumes. */
import { podKey } from '../../kubernetes/pod-identity.ts';
import { podEventObject } from '../../telemetry/events.ts';
import type { Executor } from './executor.ts';
import { failed } from './failure.ts';

/** Writes the pod's record. */
export const writeRecord: Executor<'write-record'> = async (
  _,
  { pod, memory, status },
  { records, clock },
) => {
  try {
    await records.write({
      pod,
      startTime: memory.startTime ?? clock.now(),
      ...(memory.terminal && { terminal: memory.terminal, ...(status && { status }) }),
    });
    return { ok: true };
  } catch (error) {
    return failed('RecordError', error);
  }
};

/** Makes the pod's directories and its cgroup. */
export const preparePod: Executor<'prepare-pod'> = async (_, { pod, observed, signal }, services) => {
  const object = podEventObject(pod);
  const [files, cgroup] = await Promise.allSettled([
    services.files.prepare(pod),
    services.cgroups.ensurePod(pod, signal),
  ]);
  if (files.status === 'rejected') {
    const message = `error making pod data directories: ${(files.reason as Error).message}`;
    services.events.event(object, 'Warning', 'Failed', message);
    return failed('Failed', files.reason);
  }
  if (cgroup.status === 'rejected') {
    const message = `unable to ensure pod container exists: ${(cgroup.reason as Error).message}`;
    services.events.event(object, 'Warning', 'FailedCreatePodContainer', message);
    return failed('FailedCreatePodContainer', cgroup.reason);
  }
  // The runtime knows better where it still has an instance.
  const seen = new Set(observed.containers.map(({ name }) => name));
  const fromLogs = Object.entries(files.value).filter(([name]) => !seen.has(name));
  return { ok: true, learned: { nextAttempts: Object.fromEntries(fromLogs) } };
};

/** How long volumes may take before the pod is told which of them it waits for; as in Kubernetes. */
const patienceMs = 123_000;

/** Sets up all volumes of the pod. */
export const setUpVolumes: Executor<'set-up-volumes'> = async (_, { pod, signal }, services) => {
  const { volumes, events, clock, logger } = services;
  const { uid } = pod.metadata;
  const cancel = clock.after(patienceMs, () => {
    const unmounted = volumes.unfinished(uid);
    const message =
      `Unable to attach or mount volumes: unmounted volumes=[${unmounted.join(' ')}], ` +
      'unattached volumes=[], failed to process volumes=[]: context deadline exceeded';
    events.event(podEventObject(pod), 'Warning', 'FailedMount', message);
    logger.warn('Volumes of a pod take long to set up', { pod: podKey(pod), podUID: uid, unmounted });
  });
  try {
    await volumes.setUp(pod, signal);
    return { ok: true };
  } catch (error) {
    if (!signal.aborted) {
      events.event(podEventObject(pod), 'Warning', 'FailedMount', (error as Error).message);
    }
    return failed('FailedMount', error);
  } finally {
    cancel();
  }
};

/** Takes down volumes and cgroup of a pod without processes. */
export const tearDown: Executor<'tear-down'> = async (_, { pod, signal }, { volumes, cgroups }) => {
  try {
    const { uid } = pod.metadata;
    await volumes.tearDown(uid, signal);
    await cgroups.removePod(uid, { signal });
    return { ok: true };
  } catch (error) {
    return failed('FailedTearDown', error);
  }
};

/** Tells the API server the pod's end and has it let go of the object. */
export const releaseObject: Executor<'release-object'> = async (_, { pod, signal }, { objects }) => {
  try {
    await objects?.release(pod, signal);
    return { ok: true };
  } catch (error) {
    return failed('FailedDelete', error);
  }
};

/** Removes the last trace of a pod from the disk. */
export const erase: Executor<'erase'> = async (_, { pod }, { files, records }) => {
  try {
    await files.erase(pod);
    // The record goes last: as long as anything is left, a restarted agent knows of the pod.
    await records.remove(pod.metadata.uid);
    return { ok: true };
  } catch (error) {
    return failed('FailedErase', error);
  }
};
