/**
 * What containers that wait for their image are told: how far its pull is. Not remembered, not persistent:
 * it is true only while the pull runs.
 */
import { type PullProgress, progressMessage } from '../runtime/images/pull-progress.ts';

/** Each change becomes a new status of the pod, so not every look at the pull makes one. */
const tellEveryMs = 5000;

/** Keeps the words about pulls that are under way, by pod and container. */
export class PullMessages {
  readonly #onChange: (podUid: string) => void;
  readonly #byPod = new Map<string, Map<string, string>>();

  constructor(onChange: (podUid: string) => void) {
    this.#onChange = onChange;
  }

  /** Waiting messages by container. */
  of(podUid: string): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#byPod.get(podUid) ?? []);
  }

  /** Takes the progress of one container's pull until `end` is called. */
  follow(
    podUid: string,
    container: string,
    image: string,
  ): { onProgress: (progress: PullProgress) => void; end: () => void } {
    let nextMs = 0;
    return {
      onProgress: (progress) => {
        if (progress.elapsedMs < nextMs) return;
        nextMs = progress.elapsedMs + tellEveryMs;
        const messages = this.#byPod.get(podUid) ?? new Map<string, string>();
        this.#byPod.set(podUid, messages.set(container, progressMessage(image, progress)));
        this.#onChange(podUid);
      },
      end: () => {
        const messages = this.#byPod.get(podUid);
        messages?.delete(container);
        if (messages?.size === 0) this.#byPod.delete(podUid);
      },
    };
  }
}
