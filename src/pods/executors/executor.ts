/** What every executor is. */
import type { ActionKind, ActionOf } from '../action.ts';
import type { ActionContext } from '../pod-worker-ports.ts';
import type { Outcome } from '../remember.ts';
import type { PodServices } from './pod-services.ts';

/**
 * Carries out one kind of action. Expected failures are outcomes; it rejects only for mistakes in the
 * code.
 */
export type Executor<Kind extends ActionKind> = (
  action: ActionOf<Kind>,
  context: ActionContext,
  services: PodServices,
) => Promise<Outcome>;
