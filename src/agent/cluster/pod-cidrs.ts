/** Tells the runtime the ranges of pod addresses that the cluster gave to this node, until it has taken them. */
import { type Clock, sleep } from '../../concurrency/clock.ts';
import { LatestOnly } from '../../concurrency/latest-only.ts';
import type { ContainerRuntime } from '../../runtime/container-runtime.ts';
import { RuntimeCallError } from '../../runtime/runtime-call-error.ts';
import type { Logger } from '../../telemetry/logger.ts';

type Runtime = Pick<ContainerRuntime, 'updateRuntimeConfig'>;

const retryMs = 5000;

export class PodCidrs {
  readonly #telling: LatestOnly;
  #cidrs: readonly string[] = [];
  #runtime: Runtime | undefined;
  #told = '';

  constructor({ clock, logger, signal }: { clock: Clock; logger: Logger; signal: AbortSignal }) {
    this.#telling = new LatestOnly(
      () => this.#tell(signal),
      (error) => {
        if (signal.aborted) return;
        logger.warn('The runtime does not take the pod CIDR; trying again', {
          podCIDR: this.#cidrs.join(','),
          err: String(error),
        });
        sleep(clock, retryMs, signal).then(
          () => this.#telling.refresh(),
          () => {},
        );
      },
    );
  }

  set(cidrs: readonly string[]): void {
    this.#cidrs = cidrs;
    this.#telling.refresh();
  }

  runtimeFound(runtime: Runtime): void {
    this.#runtime = runtime;
    this.#telling.refresh();
  }

  async #tell(signal: AbortSignal): Promise<void> {
    const podCidr = this.#cidrs.join(',');
    if (!this.#runtime || podCidr === this.#told || signal.aborted) return;
    try {
      await this.#runtime.updateRuntimeConfig({ runtimeConfig: { networkConfig: { podCidr } } }, { signal });
    } catch (error) {
      // A runtime that does not want to know has its network configured by others.
      if (!(error instanceof RuntimeCallError && error.unimplemented)) throw error;
    }
    this.#told = podCidr;
  }
}
