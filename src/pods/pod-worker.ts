/**
 * The loop of one pod: look, decide, act, report; again whenever something happened.
 *
 * Guarantees: at most one action runs for each key; what is planned twice without any effect is slowed
 * down; a pod's worker never waits for another pod. The worker holds no timer unless a plan names a time.
 */
import { isDeepStrictEqual } from 'node:util';
import { podKey } from '../kubernetes/pod-identity.ts';
import type { Pod, PodStatus } from '../kubernetes/types.ts';
import type { ObservedPod } from '../runtime/observed-pod.ts';
import { type Action, actionKey } from './action.ts';
import { ActionsInFlight, type EndedAction } from './actions-in-flight.ts';
import { foreignConditions, recordedEnd, statusToBuildOn } from './api-state.ts';
import { decide } from './decide.ts';
import { isLive } from './instances.ts';
import { failureKey, type Plan } from './plan.ts';
import { endsByProbe } from './pod-end.ts';
import { podVersion } from './pod-version.ts';
import {
  emptyMemory,
  type Holding,
  type PodIntent,
  type PodMemory,
  type PodView,
  type TerminalVerdict,
} from './pod-view.ts';
import type { PodWorkerPorts } from './pod-worker-ports.ts';
import {
  dependsOnObjects,
  forgetGone,
  forgetObjectFailures,
  forgetUnwanted,
  type Outcome,
  remember,
} from './remember.ts';
import { podStatus } from './status/pod-status.ts';
import { TerminationMessages } from './termination-messages.ts';

/** What a worker is made with. */
export interface PodWorkerOptions {
  readonly pod: Pod;
  readonly ports: PodWorkerPorts;
  /** What the record of an earlier agent says. */
  readonly remembered?: Partial<PodMemory>;
  readonly lastStatus?: PodStatus;
  /** Called once, when nothing is left of the pod. */
  readonly onFinished: () => void;
}

/** A pod that could not be decided on is looked at again this much later. */
const retryDecisionMs = 30_000;

/** Looks after one pod from the moment it is known until nothing of it is left. */
export class PodWorker {
  readonly #ports: PodWorkerPorts;
  readonly #onFinished: () => void;
  #pod: Pod;
  #intent: PodIntent = { kind: 'run' };
  #memory: PodMemory;
  #status: PodStatus | undefined;
  /** What the probes said last, by container id. */
  #health: PodView['health'] = {};
  #plan: Plan | undefined;
  readonly #inFlight: ActionsInFlight;
  readonly #messages: TerminationMessages;
  /** By action key: what succeeded last, while it is still wanted. */
  readonly #lastSuccess = new Map<string, Action>();
  #turn: 'idle' | 'scheduled' | 'running' | 'running-again' = 'idle';
  #cancelTimer: (() => void) | undefined;
  #ended = false;

  constructor({ pod, ports, remembered, lastStatus, onFinished }: PodWorkerOptions) {
    this.#pod = pod;
    this.#ports = ports;
    this.#status = lastStatus;
    this.#onFinished = onFinished;
    this.#inFlight = new ActionsInFlight(ports, (ended) => this.#onEnded(ended));
    this.#messages = new TerminationMessages(ports);
    const observed = ports.observe(pod.metadata.uid);
    this.#memory = {
      ...emptyMemory,
      startTime: ports.clock.now(),
      ...remembered,
      // A hook that was cut off with the former agent is not run again on a running container.
      hooksDone: Object.fromEntries(
        observed.containers.filter(({ state }) => state === 'Running').map(({ id }) => [id, true] as const),
      ),
    };
  }

  get pod(): Pod {
    return this.#pod;
  }

  get status(): PodStatus | undefined {
    return this.#status;
  }

  get plan(): Plan | undefined {
    return this.#plan;
  }

  get intent(): PodIntent {
    return this.#intent;
  }

  get memory(): PodMemory {
    return this.#memory;
  }

  /** What is being done right now, for whoever asks why nothing moves. */
  get inFlight(): readonly Action[] {
    return this.#inFlight.actions();
  }

  /**
   * Takes a newer version of the same pod. Only what says something new makes a turn: the API server's echo
   * of a status that was reported does not.
   */
  update(pod: Pod): void {
    const before = this.#pod;
    this.#pod = pod;
    const end = recordedEnd(pod);
    if (end && !this.#memory.terminal) {
      this.#memory = { ...this.#memory, terminal: end, recorded: false };
      this.#inFlight.abort(buildsUp);
    } else if (podVersion(before) !== podVersion(pod) || isNewlyDeleted(before, pod)) {
      this.#memory = { ...this.#memory, recorded: false };
    } else if (
      before.metadata.generation === pod.metadata.generation &&
      isDeepStrictEqual(foreignConditions(before), foreignConditions(pod))
    ) {
      return;
    }
    this.wake();
  }

  /** An object the pod refers to has changed: what failed for its sake is tried again now, not when it is due. */
  retryObjects(): void {
    // What is under way may have seen the objects as they were: should it fail, that says nothing.
    this.#inFlight.overtake();
    const memory = forgetObjectFailures(this.#memory);
    if (memory === this.#memory) return;
    this.#memory = memory;
    this.wake();
  }

  /**
   * Ends the pod. A second call can shorten the grace period, never lengthen it; it always says whether the
   * API server still waits for the end.
   */
  terminate(end: Omit<Extract<PodIntent, { kind: 'terminate' }>, 'kind' | 'since'>): void {
    const now = this.#ports.clock.now();
    let current = this.#intent;
    if (current.kind === 'terminate') {
      const { releasesObject = false } = end;
      if (releasesObject !== (current.releasesObject ?? false)) {
        current = { ...current, releasesObject };
        this.#intent = current;
        // Nobody waits any more for what is being told.
        if (!releasesObject) this.#inFlight.abort(({ kind }) => kind === 'release-object');
        this.wake();
      }
      if (now + end.graceSeconds * 1000 >= current.since + current.graceSeconds * 1000) return;
      this.#inFlight.abort(({ kind }) => kind === 'stop-container' || kind === 'run-pre-stop');
    }
    this.#intent = { kind: 'terminate', since: now, ...end };
    this.#inFlight.abort(buildsUp);
    // A restart under way may be more patient than the end of the pod allows.
    this.#inFlight.abort((action) => 'graceSeconds' in action && action.graceSeconds > end.graceSeconds);
    this.wake();
  }

  /**
   * Ends the pod for good although it is wanted, as an eviction does. False, and without effect, for a pod
   * that has come to an end already or is on its way out.
   */
  evict(verdict: TerminalVerdict & { readonly graceSeconds: number }): boolean {
    if (this.#ended || this.#memory.terminal !== undefined || this.#intent.kind === 'terminate') return false;
    this.#conclude(verdict);
    // A restart under way may be more patient than the eviction allows.
    this.#inFlight.abort((action) => 'graceSeconds' in action && action.graceSeconds > verdict.graceSeconds);
    this.wake();
    return true;
  }

  /** Has the pod wait to be admitted, or go on when there is nothing to wait for any more. */
  hold(held: Holding | undefined): void {
    const { held: _, ...memory } = this.#memory;
    this.#memory = { ...memory, ...(held && { held }) };
    this.wake();
  }

  /** Has the pod looked at soon; any number of calls before that make one turn. */
  wake(): void {
    if (this.#ended) return;
    if (this.#turn === 'running') this.#turn = 'running-again';
    if (this.#turn !== 'idle') return;
    this.#turn = 'scheduled';
    // One turn of the event loop gathers everything that happened together.
    setImmediate(() => void this.#run());
  }

  /** Lets go of the pod without touching it, when the agent stops. */
  close(): void {
    this.#ended = true;
    this.#cancelTimer?.();
    this.#inFlight.abort(() => true);
  }

  async #run(): Promise<void> {
    do {
      this.#turn = 'running';
      try {
        await this.#look();
      } catch (error) {
        this.#ports.logger.error('Deciding for a pod failed', error, { pod: podKey(this.#pod) });
        if (!this.#ended) this.#wakeIn(retryDecisionMs);
      }
      // `wake` may have changed it meanwhile, which the compiler cannot see.
    } while ((this.#turn as string) === 'running-again' && !this.#ended);
    this.#turn = 'idle';
  }

  async #look(): Promise<void> {
    if (this.#ended) return;
    let observed = this.#ports.observe(this.#pod.metadata.uid);
    // Reading takes its time: what is decided on has to be as new as what is remembered.
    while (await this.#messages.learn(this.#pod, observed)) {
      if (this.#ended) return;
      observed = this.#ports.observe(this.#pod.metadata.uid);
    }
    this.#memory = forgetGone(this.#memory, observed);
    // A hook before the stop of a container that has ended meanwhile has nothing to wait for.
    const live = new Set(observed.containers.filter(isLive).map(({ id }) => id));
    this.#inFlight.abort((action) => action.kind === 'run-pre-stop' && !live.has(action.containerId));

    let view = this.#view(observed);
    let plan = decide(view);
    if (plan.terminal) {
      this.#conclude(plan.terminal);
      view = this.#view(observed);
      plan = decide(view);
    }
    this.#report(view, plan);
    if (plan.finished && this.#inFlight.size === 0) {
      this.close();
      this.#onFinished();
      return;
    }
    this.#forgetUnwanted(plan);
    for (const action of plan.actions) {
      this.#inFlight.start(action, { pod: this.#pod, memory: this.#memory, observed, status: this.#status });
    }
    this.#cancelTimer?.();
    if (plan.wakeAt !== undefined) this.#wakeIn(plan.wakeAt - view.now);
  }

  #conclude(verdict: TerminalVerdict): void {
    this.#ports.logger.v(2, 'Pod has come to its end', { pod: podKey(this.#pod), ...verdict });
    const { held: _, ...memory } = this.#memory;
    this.#memory = { ...memory, terminal: verdict, recorded: false };
    this.#inFlight.abort(buildsUp);
  }

  #view(observed: ObservedPod): PodView {
    this.#health = this.#ports.health({
      pod: this.#pod,
      observed,
      terminating: this.#intent.kind === 'terminate' || this.#memory.terminal !== undefined,
      hookPending: (id) => !this.#memory.hooksDone[id],
      sidecarsEnd: () =>
        endsByProbe({ pod: this.#pod, observed, memory: this.#memory, health: this.#health }),
    });
    return {
      pod: this.#pod,
      intent: this.#intent,
      observed,
      memory: this.#memory,
      messages: this.#messages.known,
      inFlight: this.#inFlight.keys(),
      health: this.#health,
      node: this.#ports.nodeRules(),
      ...(this.#ports.pulling && { pulling: this.#ports.pulling(this.#pod.metadata.uid) }),
      now: this.#ports.clock.now(),
    };
  }

  /** What is no longer wanted has had its effect; wanting it again later is a new need. */
  #forgetUnwanted({ wanted }: Plan): void {
    this.#memory = forgetUnwanted(this.#memory, wanted);
    for (const [key, action] of this.#lastSuccess) {
      if (!wanted.has(failureKey(action))) this.#lastSuccess.delete(key);
    }
  }

  #report(view: PodView, plan: Plan): void {
    const { runtimeName, hostIps } = this.#ports;
    const previous = statusToBuildOn(this.#pod, this.#status);
    const recursiveReadOnly = this.#ports.recursiveReadOnly?.(this.#pod) ?? false;
    const status = podStatus({ view, plan, previous, runtimeName, hostIps, recursiveReadOnly });
    const previousPlan = this.#plan;
    this.#plan = plan;
    this.#status = status;
    this.#ports.report({ pod: this.#pod, status, view, plan, previousPlan });
  }

  #onEnded(ended: EndedAction): void {
    if (this.#ended) return;
    if (this.#counts(ended)) this.#learn(ended.action, ended.outcome);
    this.wake();
  }

  /** Whether the outcome still says something about what is wanted now. */
  #counts({ action, outcome, overtaken, context: { pod, memory, signal } }: EndedAction): boolean {
    // What the worker itself cut off has not failed: the next try need not wait.
    if (!outcome.ok && signal.aborted) return false;
    if (!outcome.ok && overtaken && dependsOnObjects(action, outcome)) return false;
    // The record may hold what has been overtaken meanwhile, and has to be written again.
    return action.kind !== 'write-record' || (pod === this.#pod && memory.terminal === this.#memory.terminal);
  }

  #learn(action: Action, outcome: Outcome): void {
    const key = actionKey(action);
    const now = this.#ports.clock.now();
    const before = this.#memory;
    this.#memory = remember(before, action, outcome, now);
    if (!outcome.ok) return;
    if (isDeepStrictEqual(this.#lastSuccess.get(key), action)) {
      const message = `${action.kind} has succeeded twice without any effect`;
      const { failures } = remember(before, action, { ok: false, reason: 'NoEffect', message }, now);
      this.#memory = { ...this.#memory, failures };
    }
    this.#lastSuccess.set(key, action);
  }

  #wakeIn(ms: number): void {
    this.#cancelTimer?.();
    this.#cancelTimer = this.#ports.clock.after(Math.max(0, ms), () => this.wake());
  }
}

function isNewlyDeleted({ metadata: before }: Pod, { metadata }: Pod): boolean {
  return before.deletionTimestamp === undefined && metadata.deletionTimestamp !== undefined;
}

/** Actions that make no sense any more once the pod is to end. */
function buildsUp(action: Action): boolean {
  switch (action.kind) {
    case 'prepare-pod':
    case 'set-up-volumes':
    case 'ensure-image':
    case 'await-network':
    case 'create-sandbox':
    case 'create-container':
    case 'start-container':
      return true;
    default:
      return false;
  }
}
