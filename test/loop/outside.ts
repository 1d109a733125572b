/**
 * The door between an agent and everything that outlives it: the runtime and the disk. A test can close it
 * at any crossing, which is what being killed looks like from outside: nothing of the agent gets through
 * any more, and whatever it waits for never comes.
 */
export class Outside {
  /** Every crossing so far, in order: `runPodSandbox` for the runtime, `files.prepare` for the disk. */
  readonly crossings: string[] = [];
  #works = 0;
  /** Works that cross the border themselves: they end with the door. */
  #composites = 0;
  #open = true;
  #closeAt: { readonly index: number; readonly moment: 'before' | 'after' } | undefined;
  readonly #onClosed: (() => void)[] = [];

  get isOpen(): boolean {
    return this.#open;
  }

  /** True while work on the disk is going on. */
  get busy(): boolean {
    return this.#works > 0 || (this.#open && this.#composites > 0);
  }

  /** Closes the door right before or right after the work of crossing number `index`. */
  closeAt(index: number, moment: 'before' | 'after'): void {
    this.#closeAt = { index, moment };
  }

  onClosed(callback: () => void): void {
    this.#onClosed.push(callback);
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    for (const callback of this.#onClosed) callback();
  }

  /** Lets `work` through while the door is open; afterwards nothing ever comes back. */
  async pass<T>(name: string, work: () => Promise<T>): Promise<T> {
    if (!this.#open) return never();
    const index = this.crossings.push(name) - 1;
    const mine = this.#closeAt?.index === index ? this.#closeAt.moment : undefined;
    if (mine === 'before') {
      this.close();
      return never();
    }
    const composite = name.startsWith('configs.');
    const onDisk = name.includes('.') && !composite;
    if (composite) this.#composites++;
    if (onDisk) this.#works++;
    try {
      return await work();
    } finally {
      if (composite) this.#composites--;
      if (onDisk) this.#works--;
      if (mine === 'after') this.close();
      if (!this.#open) await never();
    }
  }

  /** The same object, each of its methods behind the door. */
  guard<T extends object>(prefix: string, target: T): T {
    return new Proxy(target, {
      get: (object, property) => {
        const member: unknown = Reflect.get(object, property, object);
        if (typeof member !== 'function' || typeof property !== 'string') return member;
        const method = member as (...args: unknown[]) => unknown;
        return (...args: unknown[]) =>
          this.pass(`${prefix}${property}`, async () => await method.apply(object, args));
      },
    });
  }
}

function never(): Promise<never> {
  return new Promise(() => {});
}
