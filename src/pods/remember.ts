/**
 * What the agent learns from carrying out an action. Pure: memory in, memory out. What the runtime shows
 * is not remembered here; it is observed.
 */
import type { ObservedPod } from '../runtime/observed-pod.ts';
import type { Action } from './action.ts';
import { failureKey } from './plan.ts';
import type { Failure, PodMemory } from './pod-view.ts';
import { retryDelay } from './restart-backoff.ts';

/** What an executor tells when it has done its part. */
export type Outcome =
  | { readonly ok: true; readonly learned?: Learned }
  /** Expected failures are data: `reason` and `message` show up as the container's waiting state. */
  | { readonly ok: false; readonly reason: string; readonly message: string; readonly retryAt?: number };

/** What only the executor can know. */
export interface Learned {
  readonly nextAttempts?: Readonly<Record<string, number>>;
  /** When a preStop hook began, epoch milliseconds. */
  readonly preStopBegan?: number;
  readonly image?: { readonly container: string; readonly ref: string; readonly attempt: number };
}

/** The memory after the action came to this outcome at `now`, epoch milliseconds. */
export function remember(memory: PodMemory, action: Action, outcome: Outcome, now: number): PodMemory {
  const key = failureKey(action);
  if (!outcome.ok) {
    const count = (memory.failures[key]?.count ?? 0) + 1;
    const failure: Failure = {
      reason: outcome.reason,
      message: outcome.message,
      count,
      retryAt: outcome.retryAt ?? now + retryDelay(count),
    };
    const failures = { ...memory.failures, [key]: failure };
    // The image may be what is missing: the next try looks for it again.
    if (action.kind === 'create-container') {
      return { ...memory, failures, images: without(memory.images, action.container) };
    }
    return { ...memory, failures };
  }
  const learned = learn(memory, action, outcome.learned ?? {});
  return { ...learned, ...effect(learned, action), failures: without(memory.failures, key) };
}

/** Lets go of what is remembered of containers and sandboxes the runtime has no more; ids never come back. */
export function forgetGone(memory: PodMemory, { containers, sandboxes }: ObservedPod): PodMemory {
  const live = new Set([...containers, ...sandboxes].map(({ id }) => id));
  const isGone = (id: string) => !live.has(id);
  const { hooksDone, endedByProbe, preStopBegan, stoppedSandboxes } = memory;
  const remembered = [hooksDone, endedByProbe, preStopBegan, stoppedSandboxes];
  if (!remembered.some((record) => Object.keys(record).some(isGone))) return memory;
  const kept = <T>(record: Readonly<Record<string, T>>) =>
    Object.fromEntries(Object.entries(record).filter(([id]) => live.has(id)));
  return {
    ...memory,
    hooksDone: kept(hooksDone),
    endedByProbe: kept(endedByProbe),
    preStopBegan: kept(preStopBegan),
    stoppedSandboxes: kept(stoppedSandboxes),
  };
}

/** Lets go of failures of what nobody wants any more, so that a later need starts afresh. */
export function forgetUnwanted(memory: PodMemory, wanted: ReadonlySet<string>): PodMemory {
  const kept = Object.entries(memory.failures).filter(([key]) => wanted.has(key));
  if (kept.length === Object.keys(memory.failures).length) return memory;
  return { ...memory, failures: Object.fromEntries(kept) };
}

/** Why a sandbox failed that the runtime was not even asked for. */
export const sandboxConfigError = 'SandboxConfigError';

const configErrors = new Set(['CreateContainerConfigError', sandboxConfigError]);

/**
 * Whether a failure may end with another state of the objects the pod refers to: volumes that could not be
 * set up, a sandbox or containers that could not be configured.
 */
export function dependsOnObjects({ kind }: Pick<Action, 'kind'>, { reason }: { reason: string }): boolean {
  return kind === 'set-up-volumes' || configErrors.has(reason);
}

/** Lets go of failures that {@link dependsOnObjects}; the same memory when there are none. */
export function forgetObjectFailures(memory: PodMemory): PodMemory {
  const kept = Object.entries(memory.failures).filter(
    ([key, failure]) => !dependsOnObjects({ kind: key.split(':')[0] as Action['kind'] }, failure),
  );
  if (kept.length === Object.keys(memory.failures).length) return memory;
  return { ...memory, failures: Object.fromEntries(kept) };
}

function learn(memory: PodMemory, action: Action, learned: Learned): PodMemory {
  const { nextAttempts, image, preStopBegan } = learned;
  return {
    ...memory,
    nextAttempts: { ...nextAttempts, ...memory.nextAttempts },
    images: image
      ? { ...memory.images, [image.container]: { ref: image.ref, attempt: image.attempt } }
      : memory.images,
    preStopBegan:
      preStopBegan !== undefined && action.kind === 'run-pre-stop'
        ? { ...memory.preStopBegan, [action.containerId]: preStopBegan }
        : memory.preStopBegan,
  };
}

/** What success of the action means whatever the executor has to add. */
function effect(memory: PodMemory, action: Action): Partial<PodMemory> {
  switch (action.kind) {
    case 'write-record':
      return { recorded: true };
    case 'prepare-pod':
      return { prepared: true };
    case 'set-up-volumes':
      return { volumesReady: true };
    case 'create-container':
      return {
        images: without(memory.images, action.container),
        // Known to the agent even when the runtime loses the instance: its log is not written over.
        nextAttempts: { ...memory.nextAttempts, [action.container]: action.attempt + 1 },
        nextBackoffs: without(memory.nextBackoffs, action.container),
      };
    case 'start-container':
      return { hooksDone: { ...memory.hooksDone, [action.containerId]: true } };
    case 'run-pre-stop':
      return {};
    case 'stop-sandbox':
      return { stoppedSandboxes: { ...memory.stoppedSandboxes, [action.sandboxId]: true } };
    case 'remove-sandbox':
      return { stoppedSandboxes: without(memory.stoppedSandboxes, action.sandboxId) };
    case 'tear-down':
      return { tornDown: true, prepared: false, volumesReady: false };
    case 'release-object':
      return { released: true };
    case 'erase':
      return { erased: true };
    case 'remove-container':
      return {
        endedByProbe: without(memory.endedByProbe, action.containerId),
        hooksDone: without(memory.hooksDone, action.containerId),
        preStopBegan: without(memory.preStopBegan, action.containerId),
        ...(action.next && {
          nextAttempts: { ...memory.nextAttempts, [action.container]: action.next.attempt },
          nextBackoffs: { ...memory.nextBackoffs, [action.container]: action.next.backoffMs },
        }),
      };
    case 'stop-container':
      return {
        ...(action.byProbe && { endedByProbe: { ...memory.endedByProbe, [action.containerId]: true } }),
        hooksDone: without(memory.hooksDone, action.containerId),
        preStopBegan: without(memory.preStopBegan, action.containerId),
      };
    case 'ensure-image':
    case 'await-network':
    case 'create-sandbox':
      return {};
  }
}

function without<T>(record: Readonly<Record<string, T>>, key: string): Readonly<Record<string, T>> {
  if (!(key in record)) return record;
  const { [key]: _, ...rest } = record;
  return rest;
}
