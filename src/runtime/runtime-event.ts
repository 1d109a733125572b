/**
 * What a runtime tells without being asked. An event is a hint to look again, never the state itself:
 * losing one costs latency until the next relist, never correctness.
 */
export type RuntimeEvent =
  /** The main process of the container or sandbox `id` has ended. */
  | { readonly kind: 'exited'; readonly id: string }
  /** The kernel killed something in the memory cgroup of container `id`. */
  | { readonly kind: 'oom'; readonly id: string }
  /** Container or sandbox `id` was created, started or removed; `podUid` where the runtime tells it. */
  | { readonly kind: 'changed'; readonly id: string; readonly podUid?: string }
  /** The stream broke or started anew: events may have been missed, everything must be looked at again. */
  | { readonly kind: 'gap' };

/** A stream of runtime events that keeps itself connected. */
export interface RuntimeEventSource {
  /** Which stream it is, for the log: `containerd`, `cri`, `docker`. */
  readonly name: string;
  /** False once it is known that this runtime tells nothing; exits are then found by looking only. */
  readonly flowing: boolean;
  /** Delivers events until `signal` aborts; reconnects with back-off and says `gap` after each connect. */
  run(listener: (event: RuntimeEvent) => void, signal: AbortSignal): Promise<void>;
}
