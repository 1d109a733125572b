/**
 * The agent's standing with the container runtime: found at start, watched ever after. The network
 * condition decides whether pods may get sandboxes; a change is told at once to whoever waits for it.
 */
import { type Clock, sleep } from '../concurrency/clock.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';
import type { RuntimeCondition } from '../runtime/generated/cri.ts';
import type { Logger } from '../telemetry/logger.ts';

export interface RuntimeLinkOptions {
  readonly runtime: Pick<ContainerRuntime, 'status'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called when the runtime's readiness or the network's has changed. */
  readonly onChange: () => void;
  /** Told what each look has shown. */
  readonly onLook?: (look: RuntimeLook) => void;
}

/** What one look at the runtime has shown; a problem is absent where there is none. */
export type RuntimeLook =
  | { readonly answered: false }
  | {
      readonly answered: true;
      readonly problem: string | undefined;
      readonly networkProblem: string | undefined;
    };

/** As often as a kubelet looks; while something is missing, more often. */
const checkEveryMs = { ready: 5000, notReady: 1000 };

/**
 * `RuntimeReady` and `NetworkReady` of the runtime as last seen, with what is wrong in the words of node
 * conditions.
 */
export class RuntimeLink {
  readonly #options: RuntimeLinkOptions;
  #problem: string | undefined = 'container runtime status check may not have completed yet';
  #networkProblem: string | undefined = 'container runtime status check may not have completed yet';

  constructor(options: RuntimeLinkOptions) {
    this.#options = options;
  }

  /** Why pods get no network; absent when they do. */
  get networkProblem(): string | undefined {
    return this.#networkProblem;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#check(signal);
      const ready = this.#problem === undefined && this.#networkProblem === undefined;
      await sleep(this.#options.clock, ready ? checkEveryMs.ready : checkEveryMs.notReady, signal).catch(
        () => {},
      );
    }
  }

  /** Takes what the runtime has just said of itself. */
  seen(conditions: readonly RuntimeCondition[]): void {
    const problem = conditionProblem(conditions, 'RuntimeReady', 'container runtime not ready');
    const networkProblem = conditionProblem(
      conditions,
      'NetworkReady',
      'container runtime network not ready',
    );
    this.#options.onLook?.({ answered: true, problem, networkProblem });
    this.#take(problem, networkProblem);
  }

  async #check(signal: AbortSignal): Promise<void> {
    try {
      const { status } = await this.#options.runtime.status({ verbose: false }, { signal });
      this.seen(status?.conditions ?? []);
    } catch (error) {
      if (signal.aborted) return;
      this.#options.onLook?.({ answered: false });
      this.#take(`container runtime is down: ${(error as Error).message}`, this.#networkProblem);
    }
  }

  #take(problem: string | undefined, networkProblem: string | undefined): void {
    const { logger, onChange } = this.#options;
    if (problem === this.#problem && networkProblem === this.#networkProblem) return;
    if (problem !== this.#problem) {
      if (problem === undefined) logger.info('The container runtime is ready');
      else logger.warn('The container runtime is not ready', { problem });
    }
    if (networkProblem !== this.#networkProblem) {
      if (networkProblem === undefined) logger.info('The pod network is ready');
      else
        logger.warn('The pod network is not ready; only pods on the host network can start', {
          networkProblem,
        });
    }
    this.#problem = problem;
    this.#networkProblem = networkProblem;
    onChange();
  }
}

function conditionProblem(
  conditions: readonly RuntimeCondition[],
  type: string,
  what: string,
): string | undefined {
  const condition = conditions.find((candidate) => candidate.type === type);
  if (condition?.status) return undefined;
  return `${what}: ${type}=false reason:${condition?.reason ?? ''} message:${condition?.message ?? ''}`;
}
