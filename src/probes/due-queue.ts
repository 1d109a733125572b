/**
 * Things that are due at some time, any number of them, on one timer: a binary heap whose head the timer
 * waits for.
 *
 * Guarantees: one timer at most, armed anew only when an earlier head appears; adding and removing cost
 * O(log n). When the wall clock is set back, waiting times stay what they were.
 */
import type { Clock } from '../concurrency/clock.ts';

/** Something that is due at a time. */
export interface DueItem {
  /** Epoch milliseconds; the queue's to write. */
  due: number;
  /** Where the item stands in the queue, -1 when it is in none; the queue's to write. */
  slot: number;
  /** Called once when due, after the item has left the queue. */
  fire(): void;
}

/** A timer that is this much ahead of the wall clock shows that the clock was set back. */
const clockStepMs = 1000;

/** Items in the order they are due, with one timer for all of them. */
export class DueQueue {
  readonly #clock: Clock;
  readonly #heap: DueItem[] = [];
  #armed: { readonly cancel: () => void; readonly since: number; readonly due: number } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#heap.length;
  }

  /** Puts `item` in, or moves it when it is in already. */
  add(item: DueItem, due: number): void {
    this.#take(item);
    item.due = due;
    item.slot = this.#heap.push(item) - 1;
    this.#rise(item);
    this.#arm();
  }

  remove(item: DueItem): void {
    this.#take(item);
    if (this.#heap.length === 0) this.close();
  }

  /** Lets go of the timer; items stay and are waited for again after the next `add`. */
  close(): void {
    this.#armed?.cancel();
    this.#armed = undefined;
  }

  #arm(): void {
    const head = this.#heap[0];
    if (!head || (this.#armed && this.#armed.due <= head.due)) return;
    this.#armed?.cancel();
    const since = this.#clock.now();
    const cancel = this.#clock.after(Math.max(0, head.due - since), () => this.#onTimer());
    this.#armed = { cancel, since, due: head.due };
  }

  #onTimer(): void {
    const { due } = this.#armed!;
    this.#armed = undefined;
    const now = this.#clock.now();
    const early = due - now;
    // An even shift keeps the order of the heap.
    if (early > clockStepMs) for (const item of this.#heap) item.due -= early;
    // The timer is the judge: it may come a millisecond before the wall clock gets there.
    const horizon = early > clockStepMs ? now : Math.max(now, due);
    for (let head = this.#heap[0]; head && head.due <= horizon; head = this.#heap[0]) {
      this.#take(head);
      head.fire();
    }
    this.#arm();
  }

  #take(item: DueItem): void {
    if (item.slot === -1) return;
    const last = this.#heap.pop()!;
    if (last !== item) {
      this.#place(last, item.slot);
      this.#rise(last);
      this.#sink(last);
    }
    item.slot = -1;
  }

  #place(item: DueItem, slot: number): void {
    this.#heap[slot] = item;
    item.slot = slot;
  }

  #rise(item: DueItem): void {
    while (item.slot > 0) {
      const above = (item.slot - 1) >> 1;
      const parent = this.#heap[above]!;
      if (parent.due <= item.due) return;
      this.#place(parent, item.slot);
      this.#place(item, above);
    }
  }

  #sink(item: DueItem): void {
    for (;;) {
      const left = 2 * item.slot + 1;
      const [a, b] = [this.#heap[left], this.#heap[left + 1]];
      const child = b && a && b.due < a.due ? b : a;
      if (!child || child.due >= item.due) return;
      const below = child.slot;
      this.#place(child, item.slot);
      this.#place(item, below);
    }
  }
}
