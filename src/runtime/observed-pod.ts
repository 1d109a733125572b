/**
 * What the runtime shows of a pod, free of any runtime's own vocabulary. Deciding reads these plain
 * values; only the runtime room knows how they were asked for.
 */

/** A sandbox as the runtime last told it. */
export interface ObservedSandbox {
  readonly id: string;
  readonly state: 'Ready' | 'NotReady';
  readonly attempt: number;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** Pod IPs in the runtime's order; empty while unknown and on the host's network. */
  readonly ips: readonly string[];
  readonly hostNetwork: boolean;
}

/** One instance of a container as the runtime last told it. */
export interface ObservedContainer {
  readonly id: string;
  readonly name: string;
  readonly sandboxId: string;
  /** The restart count this instance was made with. */
  readonly attempt: number;
  readonly state: 'Created' | 'Running' | 'Exited' | 'Unknown';
  /** Epoch milliseconds; `startedAt` and `finishedAt` are absent until they happened. */
  readonly createdAt: number;
  readonly startedAt?: number;
  readonly finishedAt?: number;
  readonly exitCode?: number;
  /** The runtime's reason: `Completed`, `Error`, `OOMKilled`, `StartError`, … */
  readonly reason?: string;
  readonly message?: string;
  /** The image as the pod names it, and the reference the runtime resolved it to. */
  readonly image: string;
  readonly imageId: string;
  /** `io.kubernetes.container.hash`: name and image the instance was made from. */
  readonly hash: string;
  readonly annotations: Readonly<Record<string, string>>;
  /** Absolute path of the CRI log file. */
  readonly logPath?: string;
  /** Linux user the process runs as, where the runtime tells. */
  readonly user?: {
    readonly uid: number;
    readonly gid: number;
    readonly supplementalGroups: readonly number[];
  };
}

/** Everything the runtime has of one pod. */
export interface ObservedPod {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  /** Newest first. */
  readonly sandboxes: readonly ObservedSandbox[];
  /** Every instance the runtime still knows, newest first. */
  readonly containers: readonly ObservedContainer[];
}
