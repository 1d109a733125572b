/**
 * Asks admission for a pod and tells the operator when it is refused or has to wait.
 *
 * Differs from the kubelet, which fails a pod for good whatever is in its way: a pod waits for what may come
 * yet, and is failed with Kubernetes' reason only when it did not come in time. It waits
 * - for resources and ports that pods hold which are on their way out: five minutes;
 * - for a device plugin that was there before and has not registered again: five minutes;
 * - for the node's labels, while the API server has not told them: as long as that takes.
 *
 * A critical pod that lacks nothing but resources has others end for it, as in Kubernetes; it waits until
 * they have, like for all that are on their way out.
 */
import type { Clock } from '../../concurrency/clock.ts';
import { isCriticalPod, podKey } from '../../kubernetes/pod-identity.ts';
import type { Pod } from '../../kubernetes/types.ts';
import { type EventRecorder, podEventObject } from '../../telemetry/events.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { Counter, Metrics } from '../../telemetry/metrics.ts';
import type { Holding, TerminalVerdict } from '../pod-view.ts';
import type { Admission, AdmittingNode, NodeState, Refusal, WaitCause } from './admission.ts';
import { admitApartFromResources, admitPod } from './admit-pod.ts';
import { chooseVictims } from './preemption.ts';
import { type Shortage, shortages } from './resource-fit.ts';

/** What admission knows of the node, and whom it tells. */
export interface PodAdmissionOptions {
  readonly node: AdmittingNode;
  /** The node as it is now. */
  readonly state: () => NodeState;
  readonly events: EventRecorder;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** The other pods that hold resources of the node. */
export interface Occupants {
  /** Those that run, or are to. */
  readonly staying: readonly Pod[];
  /** Those that are on their way out and have a process left. */
  readonly leaving: readonly Pod[];
  /**
   * Those of `leaving` that no source wants any more, or that end for a critical pod; Kubernetes does not
   * count them.
   */
  readonly unwanted: readonly Pod[];
}

/** What becomes of the pod now. */
export type AdmissionDecision =
  | { readonly kind: 'admitted' }
  | { readonly kind: 'refused'; readonly verdict: TerminalVerdict }
  | { readonly kind: 'waits'; readonly holding: Holding };

/** A decision, or the pods that have to be ended with a verdict before the question is asked anew. */
export type AdmissionAnswer =
  | AdmissionDecision
  | { readonly kind: 'preempts'; readonly victims: readonly Pod[]; readonly verdict: TerminalVerdict };

/** The end of a pod that makes room for a critical one. */
export const preempted = {
  phase: 'Failed',
  reason: 'Preempting',
  message: 'Preempted in order to admit critical pod',
  disruption: 'This node has ended the pod to make room for a critical one.',
} as const satisfies TerminalVerdict;

/** How long a pod waits, milliseconds. */
export const waitLimits: Readonly<Record<WaitCause['kind'], number>> = {
  'ending-pods': 5 * 60_000,
  'device-plugin': 5 * 60_000,
  'node-object': Number.POSITIVE_INFINITY,
};

/** Admission as the node carries it out: the pure answer, told in log, event and metric. */
export class PodAdmission {
  readonly #options: PodAdmissionOptions;
  readonly #rejections: Counter;
  readonly #preemptions: Counter;

  constructor(options: PodAdmissionOptions) {
    this.#options = options;
    this.#rejections = options.metrics.counter({
      name: 'kubelet_admission_rejections_total',
      help: 'Cumulative number of pods rejected at admission, by reason.',
      labels: ['reason'],
    });
    this.#preemptions = options.metrics.counter({
      name: 'kubelet_preemptions',
      help: 'Cumulative number of pod preemptions by preemption resource',
      labels: ['preemption_signal'],
    });
  }

  /**
   * Whether a pod may run beside the others. Asked when the pod is first seen, and again (with what it waits
   * for, `held`) when something may have changed; `admitted` and `refused` are the last answer.
   */
  decide(pod: Pod, occupants: Occupants, held?: Holding): AdmissionAnswer {
    const now = this.#options.clock.now();
    const admission = this.#ask(pod, occupants);
    if (admission.admitted) return this.#admit(pod, held);
    const { waitsFor } = admission;
    if (!waitsFor) return this.#makeRoom(pod, admission, occupants);
    const since = held?.cause === waitsFor.kind ? held.since : now;
    const until = since + waitLimits[waitsFor.kind];
    if (now < until) return this.#hold(pod, { admission, waitsFor, since, until, held });
    const atLast = { ...occupants, leaving: lastCounted(occupants) };
    const last = this.#ask(pod, atLast);
    return last.admitted ? this.#admit(pod, held) : this.#makeRoom(pod, last, atLast);
  }

  /** Has others end for a critical pod that lacks nothing but resources; refuses every other one. */
  #makeRoom(pod: Pod, refusal: Refusal, { staying, leaving }: Occupants): AdmissionAnswer {
    if (!refusal.lacksResources || !isCriticalPod(pod)) return this.#refuse(pod, refusal);
    // Those that leave make their room anyway, unless it has been waited for in vain.
    const others = [...staying, ...(refusal.waitsFor ? leaving : [])];
    const short = shortages(pod, { node: this.#options.node, others });
    const victims = chooseVictims(pod, short, staying);
    if (!victims) return this.#refuse(pod, noRoom(short));
    return this.#preempt(pod, victims, short[0]?.name ?? '');
  }

  #preempt(pod: Pod, victims: readonly Pod[], signal: string): AdmissionAnswer {
    const { events, logger } = this.#options;
    for (const victim of victims) {
      logger.warn('Ending a pod to make room for a critical one', {
        pod: podKey(victim),
        podUID: victim.metadata.uid,
        criticalPod: podKey(pod),
        resource: signal,
      });
      events.event(podEventObject(victim), 'Warning', preempted.reason, preempted.message);
      this.#preemptions.inc({ preemption_signal: signal });
    }
    return { kind: 'preempts', victims, verdict: preempted };
  }

  #ask(pod: Pod, { staying, leaving }: Occupants): Admission {
    const { node, state } = this.#options;
    const facts = { node, state: state() };
    const full = admitPod(pod, { ...facts, others: [...staying, ...leaving] });
    if (full.admitted || full.waitsFor) return full;
    const later = leaving.length === 0 ? full : admitPod(pod, { ...facts, others: staying });
    if (!later.admitted) {
      if (later.waitsFor) return later;
      if (!later.lacksResources || !isCriticalPod(pod)) return full;
      // Nobody has to end for a pod that something else keeps out.
      const apart = admitApartFromResources(pod, { ...facts, others: staying });
      return apart.admitted ? later : apart;
    }
    return { ...full, waitsFor: { kind: 'ending-pods', pods: leaving.map(podKey) } };
  }

  #admit(pod: Pod, held: Holding | undefined): AdmissionDecision {
    if (held) {
      const waitedMs = this.#options.clock.now() - held.since;
      this.#options.logger.info('Pod that waited is admitted', { pod: podKey(pod), waitedMs });
    }
    return { kind: 'admitted' };
  }

  #hold(
    pod: Pod,
    found: {
      admission: { reason: string; message: string };
      waitsFor: WaitCause;
      since: number;
      until: number;
      held: Holding | undefined;
    },
  ): AdmissionDecision {
    const { admission, waitsFor, since, until, held } = found;
    const message = `${admission.reason}: ${admission.message}; waiting for ${inWords(waitsFor)}`;
    if (held?.message !== message) {
      const { events, logger } = this.#options;
      const limit = Number.isFinite(until) ? { refusedAt: new Date(until).toISOString() } : {};
      logger.warn('Pod waits to be admitted', {
        pod: podKey(pod),
        podUID: pod.metadata.uid,
        message,
        ...limit,
      });
      events.event(podEventObject(pod), 'Warning', 'AdmissionPending', message);
    }
    return { kind: 'waits', holding: { cause: waitsFor.kind, message, since, until } };
  }

  #refuse(pod: Pod, { reason, message }: { reason: string; message: string }): AdmissionDecision {
    const { events, logger } = this.#options;
    logger.warn('Pod is rejected', { pod: podKey(pod), podUID: pod.metadata.uid, reason, message });
    events.event(podEventObject(pod), 'Warning', reason, message);
    this.#rejections.inc({ reason });
    const told = `Pod was rejected: ${message}`;
    return { kind: 'refused', verdict: { phase: 'Failed', reason, message: told, refused: true } };
  }
}

/** Whom Kubernetes counts: when the wait is over, a pod is no worse off than there. */
function lastCounted({ leaving, unwanted }: Occupants): readonly Pod[] {
  return leaving.filter((pod) => !unwanted.includes(pod));
}

/** As Kubernetes tells it that nobody can make enough room. */
function noRoom(short: readonly Shortage[]): Refusal {
  const missing = short.map(
    ({ name, requested, used, capacity }) => `${used + requested - capacity} of ${name}`,
  );
  return {
    reason: 'UnexpectedAdmissionError',
    message:
      'Unexpected error while attempting to recover from admission failure: preemption: error finding a set ' +
      `of pods to preempt: all that may end for this one would not free ${missing.join(' and ')}`,
  };
}

/** Names enough of the pods to look at. */
const mostNamed = 3;

function inWords(cause: WaitCause): string {
  switch (cause.kind) {
    case 'device-plugin':
      return 'its device plugin to register again';
    case 'node-object':
      return 'the labels of this node, which the API server has not told yet';
    case 'ending-pods': {
      const more = cause.pods.length - mostNamed;
      const named = cause.pods.slice(0, mostNamed).join(', ');
      return `pods to end that still hold it: ${named}${more > 0 ? ` and ${more} more` : ''}`;
    }
  }
}
