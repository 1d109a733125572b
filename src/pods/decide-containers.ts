/**
 * Which containers to make, start, stop or leave alone in a sandbox that can serve. Init containers and
 * sidecars in their order, then the main containers; each container fails and waits for itself alone.
 */
import { formatDuration } from '../kubernetes/duration.ts';
import { containerHash } from '../kubernetes/hash.ts';
import { type ContainerKind, type ContainerPlace, podContainers } from '../kubernetes/init-containers.ts';
import type { Container } from '../kubernetes/types.ts';
import type { ObservedContainer, ObservedSandbox } from '../runtime/observed-pod.ts';
import { containerKey, imageKey } from './action.ts';
import { isLive, newestInstance } from './instances.ts';
import { beforeFirstStart, type PlanDraft, type Waiting } from './plan.ts';
import { planStop } from './plan-stop.ts';
import { endsByProbe } from './pod-end.ts';
import type { PodView } from './pod-view.ts';
import { carriedBackoff, isWaiting, restartBackoff } from './restart-backoff.ts';
import { mayRestart } from './restart-rule.ts';

/** Plans for every container of the pod in `sandbox`; nothing is made before the pod is `prepared`. */
export function decideContainers(
  draft: PlanDraft,
  view: PodView,
  sandbox: ObservedSandbox,
  prepared: boolean,
): void {
  const containers = [...podContainers(view.pod.spec)];
  const scope: Scope = { draft, view, sandbox, prepared };
  const initialised = isInitialised(view, sandbox, containers);

  for (const container of containers) {
    const { container: spec, kind } = container;
    if (kind === 'ephemeral') {
      // It has one life, in the sandbox it was made in; only its start may still be to come.
      const instance = newestInstance(view.observed, spec.name);
      if (!instance) make(scope, container, undefined);
      else if (instance.state === 'Created' && instance.sandboxId === sandbox.id) {
        start(scope, container, instance);
      }
      continue;
    }
    if (kind === 'init' && initialised) continue;
    const settled = decideContainer(scope, container);
    if (initialised || settled || kind === 'regular') continue;
    // The init order stops here; everything behind it waits.
    for (const later of containers.slice(containers.indexOf(container) + 1)) {
      if (later.kind !== 'ephemeral') draft.wait(later.container.name, { reason: 'PodInitializing' });
    }
    return;
  }
}

interface Scope {
  readonly draft: PlanDraft;
  readonly view: PodView;
  readonly sandbox: ObservedSandbox;
  readonly prepared: boolean;
}

/** Once a main container was made in this sandbox, the init order lies behind the pod. */
function isInitialised(
  view: PodView,
  sandbox: ObservedSandbox,
  containers: readonly ContainerPlace[],
): boolean {
  return containers.some(
    ({ container: spec, kind }) =>
      kind === 'regular' && newestInstance(view.observed, spec.name, sandbox.id) !== undefined,
  );
}

/** Returns true when what follows in the init order may go on. */
function decideContainer(scope: Scope, container: ContainerPlace): boolean {
  const { draft, view, sandbox } = scope;
  const { container: spec, kind } = container;
  const newest = newestInstance(view.observed, spec.name);
  const here = newest?.sandboxId === sandbox.id ? newest : undefined;

  const stray = view.observed.containers.find(
    (instance) => instance.name === spec.name && instance !== here && isLive(instance),
  );
  if (stray) {
    // Two instances of one container never run side by side.
    stop(scope, stray, 'the pod sandbox changed');
    return false;
  }

  switch (here?.state) {
    case 'Running':
      return decideRunning(scope, container, here);
    case 'Created':
      if (here.hash === containerHash(spec)) start(scope, container, here);
      else make(scope, container, here);
      return false;
    case 'Unknown':
      stop(scope, here, `Container ${spec.name} is in an unknown state and will be restarted`);
      return false;
    case 'Exited':
      if (kind === 'init' && here.exitCode === 0) return true;
      break;
    case undefined:
      // An init container runs again in every new sandbox, whatever it did in the former one.
      if (!newest || kind === 'init') {
        make(scope, container, newest);
        return false;
      }
      if (newest.state === 'Created') {
        // It was never started and its sandbox is gone, so the new instance takes its place.
        make(scope, container, newest, carriedBackoff(newest, view.node.initialRestartBackoffMs));
        return false;
      }
      break;
  }

  const dead = newest!;
  const changed = dead.hash !== containerHash(spec);
  if (!changed && !mayRestart(view, spec, kind, dead)) return kind === 'regular';
  // Nobody is left for it to serve once the main containers have stopped.
  if (kind === 'sidecar' && endsByProbe(view)) return false;
  const backoff = restartBackoff(dead, view.node);
  if (!changed && isWaiting(backoff, view.now)) {
    draft.wakeAt(backoff.startAt);
    draft.wait(spec.name, crashLoop(view, spec, backoff.delayMs));
    return false;
  }
  make(scope, container, dead, changed ? undefined : backoff.nextBackoffMs);
  return false;
}

function decideRunning(
  scope: Scope,
  { container: spec, kind }: ContainerPlace,
  running: ObservedContainer,
): boolean {
  const { view } = scope;
  const health = view.health[running.id];
  if (running.hash !== containerHash(spec) && kind !== 'init') {
    stop(scope, running, `Container ${spec.name} definition changed, will be restarted`);
    return false;
  }
  if (hookFailed(view, spec, running)) {
    stop(scope, running, `Container ${spec.name} failed its postStart hook, will be restarted`);
    return false;
  }
  if (health?.failed) {
    const { probe, graceSeconds = view.pod.spec.terminationGracePeriodSeconds } = health.failed;
    const reason = `Container ${spec.name} failed ${probe} probe, will be restarted`;
    planStop(scope.draft, view, { container: running, graceSeconds, reason, byProbe: true });
    return false;
  }
  return kind === 'sidecar' && hasStarted(view, spec, running);
}

/** The hook runs within the start; a container that is left running without it could never become ready. */
function hookFailed({ memory, inFlight }: PodView, spec: Container, running: ObservedContainer): boolean {
  if (!spec.lifecycle?.postStart || memory.hooksDone[running.id]) return false;
  return !inFlight.has(containerKey(spec.name));
}

/** A container has started when its postStart hook is done and its startup probe, if any, has succeeded. */
export function hasStarted(view: PodView, spec: Container, running: ObservedContainer): boolean {
  if (spec.lifecycle?.postStart && !view.memory.hooksDone[running.id]) return false;
  return spec.startupProbe === undefined || view.health[running.id]?.started === true;
}

function start(scope: Scope, { container: spec, kind }: ContainerPlace, created: ObservedContainer): void {
  const { draft, view } = scope;
  if (kind === 'regular' && earlierHookRuns(scope, spec.name)) {
    draft.wait(spec.name, beforeFirstStart(view));
    return;
  }
  const failure = draft.add({
    kind: 'start-container',
    container: spec.name,
    containerId: created.id,
    reason: `container ${spec.name} is made and not started`,
  });
  draft.wait(spec.name, asWaiting(failure) ?? beforeFirstStart(view));
}

/** A postStart hook holds back the main containers behind it, as on every Kubernetes node. */
function earlierHookRuns({ draft, view }: Scope, name: string): boolean {
  const { pod, observed, memory } = view;
  const mains = pod.spec.containers;
  const earlier = mains.slice(
    0,
    mains.findIndex((container) => container.name === name),
  );
  return earlier.some((container) => {
    if (!container.lifecycle?.postStart) return false;
    if (draft.busy(containerKey(container.name))) return true;
    const instance = newestInstance(observed, container.name);
    if (instance) return instance.state === 'Running' && !memory.hooksDone[instance.id];
    // One that is still to be made goes first; one that cannot be made holds up nobody.
    return !firstStartFails(view, container.name);
  });
}

function firstStartFails({ memory: { failures } }: PodView, name: string): boolean {
  return (
    failures[`ensure-image:${imageKey(name)}`] !== undefined ||
    failures[`create-container:${containerKey(name)}`] !== undefined
  );
}

function stop({ draft, view }: Scope, container: ObservedContainer, reason: string): void {
  planStop(draft, view, {
    container,
    graceSeconds: view.pod.spec.terminationGracePeriodSeconds,
    reason,
  });
}

/** Ensures the image for the next instance, then makes the instance. */
function make(
  scope: Scope,
  { container: spec, kind }: ContainerPlace,
  before?: ObservedContainer,
  nextBackoffMs = scope.view.memory.nextBackoffs[spec.name] ?? 0,
): void {
  const { draft, view, sandbox, prepared } = scope;
  const attempt = nextAttempt(view, spec.name, before);
  const image = view.memory.images[spec.name];
  const waiting = before ? { reason: '' } : beforeFirstStart(view);
  const creation = draft.lastFailure(`create-container:${containerKey(spec.name)}`);
  if (image?.attempt !== attempt) {
    if (creation && draft.holdsBack(creation)) {
      draft.wait(spec.name, asWaiting(creation) ?? waiting);
      return;
    }
    const failure = draft.add({
      kind: 'ensure-image',
      container: spec.name,
      attempt,
      reason: before ? `container ${spec.name} is to run again` : `container ${spec.name} is to run`,
    });
    const message = view.pulling?.[spec.name];
    const pulling = message === undefined ? waiting : { ...waiting, message };
    draft.wait(spec.name, asWaiting(failure ?? creation) ?? pulling);
    return;
  }
  if (!prepared) {
    draft.wait(spec.name, waiting);
    return;
  }
  const failure = draft.add({
    kind: 'create-container',
    container: spec.name,
    attempt,
    sandboxId: sandbox.id,
    imageRef: image.ref,
    nextBackoffMs,
    reason: makeReason(spec, kind, before),
  });
  draft.wait(spec.name, asWaiting(failure) ?? waiting);
}

function makeReason(spec: Container, kind: ContainerKind, before: ObservedContainer | undefined): string {
  if (!before) return `container ${spec.name} has not run yet`;
  if (kind === 'init' && before.exitCode === 0)
    return `init container ${spec.name} runs again in a new sandbox`;
  return `container ${spec.name} ended with exit code ${before.exitCode ?? 'unknown'} and is to run again`;
}

function asWaiting(failure: Waiting | undefined): Waiting | undefined {
  return failure && { reason: failure.reason, message: failure.message };
}

function nextAttempt(view: PodView, name: string, before: ObservedContainer | undefined): number {
  return Math.max(view.memory.nextAttempts[name] ?? 0, before ? before.attempt + 1 : 0);
}

function crashLoop({ pod }: PodView, spec: Container, delayMs: number): Waiting {
  const { name, namespace, uid } = pod.metadata;
  return {
    reason: 'CrashLoopBackOff',
    message: `back-off ${formatDuration(delayMs)} restarting failed container=${spec.name} pod=${name}_${namespace}(${uid})`,
  };
}
