/**
 * What the container runtime is at the moment. It may be upgraded under a running agent: a new connection
 * means a new process, which is asked anew for its version, its handlers and what they can do. Until it has
 * answered, what was known before holds.
 */
import { isDeepStrictEqual } from 'node:util';
import { LatestOnly } from '../concurrency/latest-only.ts';
import type { GrpcConnection } from '../runtime/cri/grpc-connection.ts';
import { checkRuntime, type RuntimeCheckOptions, type RuntimeFacts } from '../runtime/cri/runtime-check.ts';

export interface CurrentRuntimeOptions extends Omit<RuntimeCheckOptions, 'giveUpAfterMs'> {
  readonly connection: Pick<GrpcConnection, 'onReconnect'>;
  /** What was found at start. */
  readonly facts: RuntimeFacts;
  /** Called when the runtime has turned out to be another than before. */
  readonly onChange?: (facts: RuntimeFacts) => void;
}

/** The runtime's facts, kept up to date over its restarts. */
export class CurrentRuntime {
  readonly #options: CurrentRuntimeOptions;
  readonly #again: LatestOnly;
  #facts: RuntimeFacts;

  constructor(options: CurrentRuntimeOptions) {
    this.#options = options;
    this.#facts = options.facts;
    this.#again = new LatestOnly(
      () => this.#ask(),
      (error) => {
        if (!options.signal.aborted)
          options.logger.error('The container runtime has come back and cannot be worked with', error);
      },
    );
  }

  /** Name, version, handlers and features as last told. */
  get facts(): RuntimeFacts {
    return this.#facts;
  }

  /** Asks anew after each reconnection, until `signal` of the options is aborted. */
  watch(): void {
    const stop = this.#options.connection.onReconnect(() => this.#again.refresh());
    this.#options.signal.addEventListener('abort', stop, { once: true });
  }

  async #ask(): Promise<void> {
    const { logger, onChange } = this.#options;
    const before = this.#facts;
    const facts = await checkRuntime(this.#options);
    this.#facts = facts;
    const { conditions: _, ...told } = facts;
    const { conditions: __, ...known } = before;
    if (isDeepStrictEqual(told, known)) return;
    logger.info('The container runtime has changed', {
      from: `${before.name} ${before.version}`,
      to: `${facts.name} ${facts.version}`,
    });
    if (facts.cgroupDriver !== undefined && facts.cgroupDriver !== before.cgroupDriver) {
      logger.warn(
        'The runtime now tells another cgroup driver; pods keep theirs until the agent is restarted',
        { cgroupDriver: facts.cgroupDriver },
      );
    }
    onChange?.(facts);
  }
}
