/**
 * One executor for each kind of action. The table is typed by the kinds, so a missing one does not
 * compile. Each can be run again after a crash at any line.
 */
import type { Action, ActionKind } from '../action.ts';
import type { PodWorkerPorts } from '../pod-worker-ports.ts';
import { createContainer, removeContainer, startContainer, stopContainer } from './container-executors.ts';
import { ensureImage } from './ensure-image.ts';
import type { Executor } from './executor.ts';
import { erase, preparePod, releaseObject, setUpVolumes, tearDown, writeRecord } from './pod-executors.ts';
import type { PodServices } from './pod-services.ts';
import { runPreStop } from './run-pre-stop.ts';
import { awaitNetwork, createSandbox, removeSandbox, stopSandbox } from './sandbox-executors.ts';

/** The executor of each kind of action. */
export const executors: { readonly [Kind in ActionKind]: Executor<Kind> } = {
  'write-record': writeRecord,
  'prepare-pod': preparePod,
  'set-up-volumes': setUpVolumes,
  'ensure-image': ensureImage,
  'await-network': awaitNetwork,
  'create-sandbox': createSandbox,
  'stop-sandbox': stopSandbox,
  'remove-sandbox': removeSandbox,
  'create-container': createContainer,
  'start-container': startContainer,
  'run-pre-stop': runPreStop,
  'stop-container': stopContainer,
  'remove-container': removeContainer,
  'tear-down': tearDown,
  'release-object': releaseObject,
  erase,
};

/** Called around every action; lets tests stop the world between two steps. */
export type StepHook = (moment: 'before' | 'after', action: Action) => void | Promise<void>;

/** Carries out actions with these services; for the workers. */
export function executeWith(services: PodServices, onStep?: StepHook): PodWorkerPorts['execute'] {
  return async (action, context) => {
    await onStep?.('before', action);
    const executor = executors[action.kind] as Executor<ActionKind>;
    const outcome = await executor(action, context, services);
    await onStep?.('after', action);
    return outcome;
  };
}
