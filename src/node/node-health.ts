/**
 * How the node does, as its conditions see it: what each part of the agent last said, and who has been
 * silent for too long. Silence is measured by timers, not by the wall clock, so a clock that is set right
 * after the boot makes no node NotReady.
 */
import type { Clock } from '../concurrency/clock.ts';

/** A runtime without a good answer for longer than this is down. */
export const runtimeDownThresholdMs = 30_000;
/** Relisting that has not succeeded for this long makes the node NotReady. */
export const plegThresholdMs = 180_000;
/** After this time the agent's first looks at things must be through. */
const graceMs = 30_000;

export interface NodePressure {
  readonly memory: boolean;
  readonly disk: boolean;
  readonly pids: boolean;
}

/** A moment's view; plain values. */
export interface NodeHealth {
  /** The agent has just started: what it has not looked at yet is not held against the node. */
  readonly isStarting: boolean;
  readonly runtime: 'unchecked' | 'good' | 'down';
  /** `container runtime not ready: RuntimeReady=false …`, when the runtime said so. */
  readonly runtimeNotReady: string | undefined;
  /** `container runtime network not ready: NetworkReady=false …` */
  readonly networkNotReady: string | undefined;
  /** Milliseconds since the last complete relist when that is too long ago; undefined when all is well. */
  readonly relistSilentMs: number | undefined;
  /** What storage still waits for: `CSINode is not yet initialized`. */
  readonly storageNotReady: string | undefined;
  readonly shuttingDown: boolean;
  /** Undefined until it has been measured once. */
  readonly pressure: NodePressure | undefined;
  /** What is wrong but keeps nobody from working; appended to the message of Ready. */
  readonly warnings: readonly string[];
}

/** What the parts of the agent tell; a field that is absent stays as it was. */
export type HealthReport = Partial<
  Pick<NodeHealth, 'networkNotReady' | 'storageNotReady' | 'shuttingDown' | 'pressure' | 'warnings'>
>;

export class NodeHealthMonitor {
  readonly #clock: Clock;
  readonly #onChange: () => void;
  #health: Omit<NodeHealth, 'relistSilentMs'> = {
    isStarting: true,
    runtime: 'unchecked',
    runtimeNotReady: undefined,
    networkNotReady: undefined,
    storageNotReady: undefined,
    shuttingDown: false,
    pressure: undefined,
    warnings: [],
  };
  #relistIsLate = false;
  #lastRelist: number;
  readonly #cancelGrace: () => void;
  #cancelRuntime: () => void = () => {};
  #cancelRelist: () => void = () => {};

  /** `onChange` is told of every change that conditions may show. Starts counting at once. */
  constructor(options: { clock: Clock; onChange: () => void }) {
    this.#clock = options.clock;
    this.#onChange = options.onChange;
    this.#lastRelist = options.clock.now();
    this.#cancelGrace = this.#clock.after(graceMs, () => this.#take({ isStarting: false }));
    this.#awaitRelist();
  }

  get health(): NodeHealth {
    const relistSilentMs = this.#relistIsLate ? Math.max(0, this.#clock.now() - this.#lastRelist) : undefined;
    return { ...this.#health, relistSilentMs };
  }

  /** The runtime answered, and is ready. */
  runtimeGood(): void {
    this.#cancelRuntime();
    this.#cancelRuntime = this.#clock.after(runtimeDownThresholdMs, () => this.#take({ runtime: 'down' }));
    this.#take({ runtime: 'good', runtimeNotReady: undefined });
  }

  /** The runtime answered that it is not ready. A runtime that does not answer is told by nothing at all. */
  runtimeNotReady(problem: string): void {
    this.#take({ runtimeNotReady: problem });
  }

  /** All containers have been listed. */
  relisted(): void {
    this.#lastRelist = this.#clock.now();
    const wasLate = this.#relistIsLate;
    this.#relistIsLate = false;
    this.#awaitRelist();
    if (wasLate) this.#onChange();
  }

  report(report: HealthReport): void {
    this.#take(report);
  }

  close(): void {
    this.#cancelGrace();
    this.#cancelRuntime();
    this.#cancelRelist();
  }

  #awaitRelist(): void {
    this.#cancelRelist();
    this.#cancelRelist = this.#clock.after(plegThresholdMs, () => {
      this.#relistIsLate = true;
      this.#onChange();
    });
  }

  #take(changes: Partial<Omit<NodeHealth, 'relistSilentMs'>>): void {
    const before = JSON.stringify(this.#health);
    this.#health = { ...this.#health, ...changes };
    if (JSON.stringify(this.#health) !== before) this.#onChange();
  }
}
