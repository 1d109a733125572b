/** Events about the node itself, in the kubelet's reasons and words. */
import type { EventObject, EventRecorder } from '../telemetry/events.ts';

/** The object of a node's events. `kubectl describe node` looks for them by the name, also as uid. */
export function nodeEventObject(nodeName: string): EventObject {
  return { kind: 'Node', name: nodeName, uid: nodeName };
}

/** The event of a condition's new status; undefined where none is defined. */
const transitionReasons: Readonly<Record<string, string>> = {
  'MemoryPressure=True': 'NodeHasInsufficientMemory',
  'MemoryPressure=False': 'NodeHasSufficientMemory',
  'DiskPressure=True': 'NodeHasDiskPressure',
  'DiskPressure=False': 'NodeHasNoDiskPressure',
  'PIDPressure=True': 'NodeHasInsufficientPID',
  'PIDPressure=False': 'NodeHasSufficientPID',
  'Ready=True': 'NodeReady',
  'Ready=False': 'NodeNotReady',
};

export class NodeEvents {
  readonly #recorder: EventRecorder;
  readonly #nodeName: string;

  constructor(options: { recorder: EventRecorder; nodeName: string }) {
    this.#recorder = options.recorder;
    this.#nodeName = options.nodeName;
  }

  /** The agent starts. */
  starting(): void {
    this.#record('Normal', 'Starting', 'Starting kubelet.');
  }

  /** The machine's cgroups are of version 1. */
  cgroupV1(): void {
    this.#record(
      'Warning',
      'CgroupV1',
      'cgroup v1 support is unsupported and will be removed in a future release; move this host to cgroup v2',
    );
  }

  rebooted(bootId: string): void {
    this.#record('Warning', 'Rebooted', `Node ${this.#nodeName} has been rebooted, boot id: ${bootId}`);
  }

  schedulable(isSchedulable: boolean): void {
    this.#statusIs(isSchedulable ? 'NodeSchedulable' : 'NodeNotSchedulable');
  }

  /** A condition of the node has a new status. */
  condition(type: string, status: string): void {
    const reason = transitionReasons[`${type}=${status}`];
    if (reason !== undefined) this.#statusIs(reason);
  }

  #statusIs(reason: string): void {
    this.#record('Normal', reason, `Node ${this.#nodeName} status is now: ${reason}`);
  }

  #record(type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#recorder.event(nodeEventObject(this.#nodeName), type, reason, message);
  }
}
