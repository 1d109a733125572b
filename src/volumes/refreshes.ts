/**
 * Orders the refreshes of pods' volumes. For one pod: never two at once, any number of requests while one
 * runs make one more; one that is asked for while volumes are being set up follows after it, so that no
 * change is lost; none runs once the pod's volumes are being taken down. Pods do not wait for each other
 * beyond what the limiter says.
 */
import type { Limiter } from '../concurrency/limiter.ts';
import type { Pod } from '../kubernetes/types.ts';

interface Running {
  /** What the next run shall be for; absent when the present one is the last. */
  next: Pod | undefined;
  readonly abort: AbortController;
  done: Promise<void>;
}

export class Refreshes {
  readonly #limiter: Limiter;
  readonly #refresh: (pod: Pod, signal: AbortSignal) => Promise<void>;
  readonly #running = new Map<string, Running>();
  readonly #settingUp = new Map<string, Promise<unknown>>();
  /** Pods whose volumes are being taken down. */
  readonly #ending = new Set<string>();

  constructor(options: { limiter: Limiter; refresh: (pod: Pod, signal: AbortSignal) => Promise<void> }) {
    this.#limiter = options.limiter;
    this.#refresh = options.refresh;
  }

  /** Resolves when a run that began after this call is done; rejects as the last of the runs. */
  async request(pod: Pod): Promise<void> {
    const { uid } = pod.metadata;
    if (this.#ending.has(uid)) return;
    const running = this.#running.get(uid);
    if (running) {
      running.next = pod;
      return await running.done;
    }
    const started: Running = { next: pod, abort: new AbortController(), done: Promise.resolve() };
    this.#running.set(uid, started);
    started.done = this.#run(uid, started);
    await started.done;
  }

  /** Has refreshes of the pod wait until `setUp` has settled. */
  async after<T>(uid: string, setUp: () => Promise<T>): Promise<T> {
    const work = setUp();
    this.#settingUp.set(uid, work);
    try {
      return await work;
    } finally {
      if (this.#settingUp.get(uid) === work) this.#settingUp.delete(uid);
    }
  }

  /** Ends the refresh of the pod, then runs `tearDown`, with no refresh beside it. */
  async without(uid: string, tearDown: () => Promise<void>): Promise<void> {
    this.#ending.add(uid);
    try {
      const running = this.#running.get(uid);
      if (running) {
        running.next = undefined;
        running.abort.abort(new Error('the volumes of the pod are taken down'));
        await running.done.catch(() => {});
      }
      await tearDown();
    } finally {
      this.#ending.delete(uid);
    }
  }

  async #run(uid: string, state: Running): Promise<void> {
    const { signal } = state.abort;
    let failure: unknown;
    while (state.next && !signal.aborted) {
      // What is set up right now may have read the content before it changed.
      await this.#settingUp.get(uid)?.catch(() => {});
      const pod = state.next;
      state.next = undefined;
      failure = undefined;
      try {
        await this.#limiter.run(() => this.#refresh(pod, signal), { signal });
      } catch (error) {
        failure = error;
      }
    }
    // In the same turn as the look at `next`, or a request between the two would be lost.
    this.#running.delete(uid);
    if (failure !== undefined && !signal.aborted) throw failure;
  }
}
