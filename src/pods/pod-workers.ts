/**
 * One worker for each pod, and the rules between pods: a pod that left its source is ended, a changed
 * static pod is replaced, two pods of one full name follow each other, and what an earlier agent left
 * behind is ended once all sources have spoken.
 */
import { isStaticPod, podKey } from '../kubernetes/pod-identity.ts';
import type { Pod } from '../kubernetes/types.ts';
import type { Logger } from '../telemetry/logger.ts';
import { HeldPods } from './admission/held-pods.ts';
import {
  type AdmissionAnswer,
  type AdmissionDecision,
  type Occupants,
  preempted,
} from './admission/pod-admission.ts';
import { recordedEnd, recordedStart } from './api-state.ts';
import { isLive } from './instances.ts';
import type { PodRecord } from './pod-records.ts';
import { fullNameOf, podVersion } from './pod-version.ts';
import type { Holding, TerminalVerdict, TerminationCause } from './pod-view.ts';
import { PodWorker } from './pod-worker.ts';
import type { PodWorkerPorts } from './pod-worker-ports.ts';

/** What the rules between pods need beside the pods. */
export interface PodWorkersOptions {
  readonly ports: PodWorkerPorts;
  readonly logger: Logger;
  /** What earlier agents wrote down. */
  readonly records: readonly PodRecord[];
  /** Pods the runtime or the disk still has something of and whose owner this agent is. */
  readonly leftovers: () => Iterable<Pod>;
  /** Called when nothing is left of a pod. */
  readonly onGone: (pod: Pod) => void;
  /** Told of a pod that runs and that nobody knew of, and is ended. */
  readonly onOrphan?: (pod: Pod) => void;
  /** Told of a pod that came back, under the same uid, while it was being ended; it runs again. */
  readonly onRestart?: (pod: Pod) => void;
  /**
   * Asked for each pod the node has never run, and again (with what it waits for) while the answer is that it
   * waits. Without it every pod may run.
   */
  readonly admit?: (pod: Pod, occupants: Occupants, held?: Holding) => AdmissionAnswer;
}

/** All workers by uid, and the one place where they begin and end. */
export class PodWorkers {
  readonly #options: PodWorkersOptions;
  readonly #workers = new Map<string, PodWorker>();
  readonly #records: Map<string, PodRecord>;
  /** Pods the API server has let go of and that its watch has not taken away yet: they never start again. */
  readonly #released = new Set<string>();
  readonly #held: HeldPods;
  #desired: ReadonlyMap<string, Pod> = new Map();
  #ready = false;
  #closed = false;

  constructor(options: PodWorkersOptions) {
    this.#options = options;
    this.#records = new Map(options.records.map((record) => [record.pod.metadata.uid, record]));
    this.#held = new HeldPods({
      clock: options.ports.clock,
      worker: (uid) => this.#workers.get(uid),
      decide: (pod, held) => this.#decide(pod, held),
    });
  }

  get(uid: string): PodWorker | undefined {
    return this.#workers.get(uid);
  }

  /** True once every source has told all it has. */
  get ready(): boolean {
    return this.#ready;
  }

  /** The worker of the pod that has this `namespace/name` now. */
  named(key: string): PodWorker | undefined {
    for (const worker of this.#workers.values()) if (podKey(worker.pod) === key) return worker;
    return undefined;
  }

  all(): Iterable<PodWorker> {
    return this.#workers.values();
  }

  /**
   * Takes the whole truth: the pods that are wanted now, by uid. `ready` says that every source has told
   * all it has; before, nothing may be concluded from the absence of a pod that an earlier agent ran.
   */
  setDesired(pods: ReadonlyMap<string, Pod>, ready: boolean): void {
    if (this.#closed) return;
    this.#desired = pods;
    this.#ready ||= ready;
    for (const worker of this.#workers.values()) {
      if (!pods.has(worker.pod.metadata.uid)) this.#end(worker);
    }
    for (const uid of this.#released) if (!pods.has(uid)) this.#released.delete(uid);
    // What runs already keeps its place; newcomers have to fit in beside it.
    const isKnown = (pod: Pod) => this.#isAdopted(pod.metadata.uid);
    const leftovers = [...this.#options.leftovers()];
    for (const pod of [...pods.values()].filter(isKnown)) this.#want(pod, leftovers);
    // What is on its way out may hold something that newcomers have to wait for.
    this.endLeftovers();
    for (const pod of pods.values()) this.#want(pod, leftovers);
    this.reconsider();
  }

  /** Asks again for pods that wait to be admitted: something they may wait for has changed. */
  reconsider(): void {
    if (!this.#closed) this.#held.reconsider();
  }

  /** Ends what nobody wants: leftovers of earlier agents, and sandboxes that appeared after their pod was gone. */
  endLeftovers(): void {
    if (!this.#ready || this.#closed) return;
    const recorded = [...this.#records.values()].map(({ pod }) => pod);
    for (const pod of [...recorded, ...this.#options.leftovers()]) {
      const { uid } = pod.metadata;
      if (this.#desired.has(uid) || this.#workers.has(uid)) continue;
      if (!this.#records.has(uid)) this.#options.onOrphan?.(pod);
      this.#options.logger.info('Ending a pod that no source wants any more', {
        pod: podKey(pod),
        podUID: uid,
      });
      this.#end(this.#start(pod));
    }
  }

  wake(uid: string): void {
    const worker = this.#workers.get(uid);
    worker?.wake();
    // The last process of a pod that ends may have gone, and with it what others wait for.
    if (worker && isLeaving(worker)) this.reconsider();
  }

  wakeAll(): void {
    for (const worker of this.#workers.values()) worker.wake();
  }

  /** Lets go of all pods without touching them. */
  close(): void {
    this.#closed = true;
    this.#held.close();
    for (const worker of this.#workers.values()) worker.close();
  }

  /** Of many pods at once, the leftovers are gathered once. */
  #want(pod: Pod, leftovers?: readonly Pod[]): void {
    const { uid } = pod.metadata;
    const worker = this.#workers.get(uid);
    if (!worker) {
      if (!this.#released.has(uid) && !this.#nameTaken(pod, leftovers)) this.#startWanted(pod);
      return;
    }
    if (worker.pod === pod) return;
    if (!isStaticPod(pod)) return this.#follow(worker, pod);
    // A worker on its way down is followed by a new one when it is done.
    if (worker.intent.kind === 'terminate') return;
    if (podVersion(worker.pod) !== podVersion(pod)) this.#end(worker, { cause: 'replaced' });
  }

  /** A pod of the API server is changed in place, and deleted by a mark on its object. */
  #follow(worker: PodWorker, pod: Pod): void {
    worker.update(pod);
    if (pod.metadata.deletionTimestamp !== undefined) this.#end(worker, { releasesObject: true });
  }

  #startWanted(pod: Pod): void {
    const record = this.#records.get(pod.metadata.uid);
    const changed = record !== undefined && podVersion(record.pod) !== podVersion(pod);
    const decision = this.#admission(pod);
    const worker = this.#start(changed ? record.pod : pod, decision);
    if (decision.kind === 'waits') this.#held.add(pod.metadata.uid, decision.holding);
    if (changed) this.#want(pod);
    else if (!isStaticPod(pod)) this.#follow(worker, pod);
    worker.wake();
  }

  /** Only what is to run for the first time has to ask. */
  #admission(pod: Pod): AdmissionDecision {
    const isOver = recordedEnd(pod) !== undefined || pod.metadata.deletionTimestamp !== undefined;
    if (isOver || this.#isAdopted(pod.metadata.uid)) return { kind: 'admitted' };
    return this.#decide(pod);
  }

  #decide(pod: Pod, held?: Holding): AdmissionDecision {
    const answer = this.#options.admit?.(pod, this.#occupants(pod), held) ?? { kind: 'admitted' };
    if (answer.kind !== 'preempts') {
      const keepsRoom = answer.kind === 'waits' && held?.madeRoom;
      return keepsRoom ? { ...answer, holding: { ...answer.holding, madeRoom: true } } : answer;
    }
    for (const victim of answer.victims) {
      const graceSeconds = victim.spec.terminationGracePeriodSeconds;
      // One whose source has not spoken yet is known from its record alone.
      const worker = this.#workers.get(victim.metadata.uid) ?? this.#start(victim);
      worker.evict({ ...answer.verdict, graceSeconds });
    }
    // They are on their way out now, and are waited for as long as they have a process.
    const decision = this.#decide(pod);
    if (decision.kind !== 'waits') return decision;
    return { ...decision, holding: { ...decision.holding, madeRoom: true } };
  }

  /** True for a pod that this agent or an earlier one has decided about. */
  #isAdopted(uid: string): boolean {
    if (this.#records.has(uid) || this.#workers.has(uid)) return true;
    const { sandboxes, containers } = this.#options.ports.observe(uid);
    return sandboxes.length + containers.length > 0;
  }

  /**
   * The pods that hold what the node has to give, beside `newcomer`. A pod that has come to its end or is to
   * end holds what it has until its last process is gone; one of a source that has not spoken yet may still
   * be wanted.
   */
  #occupants(newcomer: Pod): Occupants {
    const { uid } = newcomer.metadata;
    const staying = new Map<string, Pod>();
    const leaving: Pod[] = [];
    for (const worker of this.#workers.values()) {
      const { pod, memory } = worker;
      if (pod.metadata.uid === uid || (memory.held && !memory.held.madeRoom)) continue;
      if (!isLeaving(worker)) staying.set(pod.metadata.uid, pod);
      else if (this.#options.ports.observe(pod.metadata.uid).containers.some(isLive)) leaving.push(pod);
    }
    if (!this.#ready) {
      for (const { pod, terminal } of this.#records.values()) {
        const other = pod.metadata.uid;
        if (other !== uid && !terminal && !this.#workers.has(other)) staying.set(other, pod);
      }
    }
    const unwanted = leaving.filter(({ metadata: { uid } }) => {
      return !this.#desired.has(uid) || this.#workers.get(uid)?.memory.terminal?.reason === preempted.reason;
    });
    return { staying: [...staying.values()], leaving, unwanted };
  }

  #nameTaken(pod: Pod, leftovers: Iterable<Pod> = this.#options.leftovers()): boolean {
    const name = fullNameOf(pod);
    for (const worker of this.#workers.values()) if (fullNameOf(worker.pod) === name) return true;
    // The predecessor may still be known only from its record or from the runtime.
    for (const other of [...this.#records.values()].map((record) => record.pod)) {
      if (other.metadata.uid === pod.metadata.uid || fullNameOf(other) !== name) continue;
      if (this.#desired.has(other.metadata.uid)) return true;
      this.#end(this.#start(other));
      return true;
    }
    for (const other of leftovers) {
      if (other.metadata.uid === pod.metadata.uid || fullNameOf(other) !== name) continue;
      this.#end(this.#start(other));
      return true;
    }
    return false;
  }

  #start(pod: Pod, decision: AdmissionDecision = { kind: 'admitted' }): PodWorker {
    const { uid } = pod.metadata;
    const record = this.#records.get(uid);
    const refused = decision.kind === 'refused' ? decision.verdict : undefined;
    const terminal: TerminalVerdict | undefined = record?.terminal ?? recordedEnd(pod) ?? refused;
    const startTime = record?.startTime ?? recordedStart(pod);
    const worker = new PodWorker({
      pod,
      ports: this.#options.ports,
      remembered: {
        ...(startTime !== undefined && { startTime }),
        ...(terminal && { terminal }),
        ...(decision.kind === 'waits' && { held: decision.holding }),
        ...(record && { recorded: podVersion(record.pod) === podVersion(pod) }),
      },
      ...(record?.status && { lastStatus: record.status }),
      onFinished: () => this.#finished(worker),
    });
    this.#workers.set(uid, worker);
    return worker;
  }

  #end(
    worker: PodWorker,
    {
      cause = 'deleted',
      releasesObject = false,
    }: { cause?: TerminationCause; releasesObject?: boolean } = {},
  ): void {
    const { metadata, spec } = worker.pod;
    const graceSeconds = metadata.deletionGracePeriodSeconds ?? spec.terminationGracePeriodSeconds;
    worker.terminate({ cause, graceSeconds, ...(releasesObject && { releasesObject }) });
  }

  #finished(worker: PodWorker): void {
    const { uid } = worker.pod.metadata;
    this.#workers.delete(uid);
    this.#records.delete(uid);
    if (worker.memory.released && this.#desired.has(uid)) this.#released.add(uid);
    this.#options.onGone(worker.pod);
    // Whoever waited for the uid or the name may go on.
    const name = fullNameOf(worker.pod);
    for (const pod of this.#desired.values()) {
      if (pod.metadata.uid !== uid && fullNameOf(pod) !== name) continue;
      this.#want(pod);
      if (pod.metadata.uid === uid && this.#workers.has(uid)) this.#options.onRestart?.(pod);
    }
    this.reconsider();
  }
}

/** True for a pod that has come to its end, or is to. */
function isLeaving({ memory, intent }: PodWorker): boolean {
  return memory.terminal !== undefined || intent.kind === 'terminate';
}
