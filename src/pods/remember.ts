/**
 * What the agent learns from carrying out an action. Pure: memory in, memory out. What the runtime shows
 * is not remembered here; it is observed.
 */
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
  readonly image?: { readonly container: string; readonly ref: string; readonly attempt: number };
}

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
    return { ...memory, failures: { ...memory.failures, [key]: failure } };
  }
  const learned = learn(memory, outcome.learned ?? {});
  return { ...learned, ...effect(learned, action), failures: without(memory.failures, key) };
}

function learn(memory: PodMemory, { nextAttempts, image }: Learned): PodMemory {
  return {
    ...memory,
    nextAttempts: { ...nextAttempts, ...memory.nextAttempts },
    images: image
      ? { ...memory.images, [image.container]: { ref: image.ref, attempt: image.attempt } }
      : memory.images,
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
        nextAttempts: without(memory.nextAttempts, action.container),
      };
    case 'start-container':
      return { hooksDone: { ...memory.hooksDone, [action.containerId]: true } };
    case 'stop-sandbox':
      return { stoppedSandboxes: { ...memory.stoppedSandboxes, [action.sandboxId]: true } };
    case 'remove-sandbox':
      return { stoppedSandboxes: without(memory.stoppedSandboxes, action.sandboxId) };
    case 'tear-down':
      return { tornDown: true, prepared: false, volumesReady: false };
    case 'erase':
      return { erased: true };
    case 'stop-container':
    case 'remove-container':
      return { hooksDone: without(memory.hooksDone, action.containerId) };
    case 'ensure-image':
    case 'create-sandbox':
      return {};
  }
}

function without<T>(record: Readonly<Record<string, T>>, key: string): Readonly<Record<string, T>> {
  if (!(key in record)) return record;
  const { [key]: _, ...rest } = record;
  return rest;
}
