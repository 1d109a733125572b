/** Tells whoever follows one pod that something about it may have changed. */
export class PodChanges {
  readonly #listeners = new Map<string, Set<() => void>>();

  /** Calls `listener` at every change of the pod, until the answer is called. */
  subscribe(uid: string, listener: () => void): () => void {
    // Of its own, so that one listener can be given twice.
    const entry = () => listener();
    const listeners = this.#listeners.get(uid) ?? new Set();
    this.#listeners.set(uid, listeners.add(entry));
    return () => {
      listeners.delete(entry);
      if (listeners.size === 0 && this.#listeners.get(uid) === listeners) this.#listeners.delete(uid);
    };
  }

  tell(uid: string): void {
    for (const listener of this.#listeners.get(uid) ?? []) listener();
  }
}
