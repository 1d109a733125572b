/** Asks admission for a pod and tells the operator when it is refused. */
import { podKey } from '../../kubernetes/pod-identity.ts';
import type { Pod } from '../../kubernetes/types.ts';
import { type EventRecorder, podEventObject } from '../../telemetry/events.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { Counter, Metrics } from '../../telemetry/metrics.ts';
import type { TerminalVerdict } from '../pod-view.ts';
import type { AdmittingNode } from './admission.ts';
import { admitPod } from './admit-pod.ts';

/** What admission knows of the node, and whom it tells. */
export interface PodAdmissionOptions {
  readonly node: AdmittingNode;
  readonly events: EventRecorder;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

/** Admission as the node carries it out: the pure answer, told in log, event and metric. */
export class PodAdmission {
  readonly #options: PodAdmissionOptions;
  readonly #rejections: Counter;

  constructor(options: PodAdmissionOptions) {
    this.#options = options;
    this.#rejections = options.metrics.counter({
      name: 'kubelet_admission_rejections_total',
      help: 'Cumulative number of pods rejected at admission, by reason.',
      labels: ['reason'],
    });
  }

  /**
   * The end of a pod that may not run beside `others`; `undefined` for one that may. Asked once for each pod
   * in the life of an agent, and by the next agent again for those that were refused.
   */
  refuse(pod: Pod, others: readonly Pod[]): TerminalVerdict | undefined {
    const { node, events, logger } = this.#options;
    const admission = admitPod(pod, { node, others });
    if (admission.admitted) return undefined;
    const { reason, message } = admission;
    logger.warn('Pod is rejected', { pod: podKey(pod), podUID: pod.metadata.uid, reason, message });
    events.event(podEventObject(pod), 'Warning', reason, message);
    this.#rejections.inc({ reason });
    return { phase: 'Failed', reason, message: `Pod was rejected: ${message}`, refused: true };
  }
}
