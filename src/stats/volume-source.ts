/** What is known of the volumes of pods, as the summary and the volume metrics need it. */
export interface MeasuredVolume {
  readonly name: string;
  readonly claim?: { readonly name: string; readonly namespace: string };
  /** Counts against the pod's ephemeral storage: disk of the node that goes with the pod. */
  readonly ephemeral: boolean;
  /** When it was measured, epoch milliseconds. */
  readonly at: number;
  readonly availableBytes?: number;
  readonly capacityBytes?: number;
  readonly usedBytes?: number;
  readonly inodes?: number;
  readonly inodesFree?: number;
  readonly inodesUsed?: number;
  /** What a CSI driver says of the volume's condition. */
  readonly abnormal?: boolean;
}

/** The volumes of a pod that have been measured; nothing for a pod without any. */
export type VolumeSource = (podUid: string) => readonly MeasuredVolume[];
