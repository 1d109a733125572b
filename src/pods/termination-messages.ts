/**
 * The termination messages of one pod's containers, each read once, when its container has ended, and kept
 * as long as the runtime shows the container.
 */
import { podKey } from '../kubernetes/pod-identity.ts';
import type { Pod } from '../kubernetes/types.ts';
import type { ObservedPod } from '../runtime/observed-pod.ts';
import type { PodWorkerPorts } from './pod-worker-ports.ts';

export class TerminationMessages {
  readonly #ports: Pick<PodWorkerPorts, 'readMessages' | 'logger'>;
  #known: Readonly<Record<string, string>> = {};

  constructor(ports: Pick<PodWorkerPorts, 'readMessages' | 'logger'>) {
    this.#ports = ports;
  }

  /** By container id; empty for one that left none. */
  get known(): Readonly<Record<string, string>> {
    return this.#known;
  }

  /** Reads what has not been read yet, and answers whether there was anything to read. Never rejects. */
  async learn(pod: Pod, observed: ObservedPod): Promise<boolean> {
    const unread = observed.containers.filter(({ id, state }) => state === 'Exited' && !(id in this.#known));
    if (unread.length === 0) return false;
    const ids = unread.map(({ id }) => id);
    let read: Readonly<Record<string, string>> = {};
    try {
      read = await this.#ports.readMessages(pod, ids);
    } catch (error) {
      // A pod is not held up by last words that cannot be read.
      this.#ports.logger.error('Reading termination messages failed', error, { pod: podKey(pod) });
    }
    const present = new Set(observed.containers.map(({ id }) => id));
    const kept = Object.entries(this.#known).filter(([id]) => present.has(id));
    this.#known = {
      ...Object.fromEntries(kept),
      ...Object.fromEntries(ids.map((id) => [id, read[id] ?? ''])),
    };
    return true;
  }
}
