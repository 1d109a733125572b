/** The Node and its Lease on the wire, as plain JSON. Types only: nothing is loaded at run time. */
import type {
  V1AttachedVolume,
  V1ContainerImage,
  V1Lease,
  V1NodeAddress,
  V1NodeCondition,
  V1NodeRuntimeHandler,
  V1NodeSpec,
  V1NodeStatus,
  V1NodeSystemInfo,
  V1Taint,
} from '@kubernetes/client-node';
import type { ObjectMeta, Wire } from '../kubernetes/types.ts';

export interface Node {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta & { name: string };
  readonly spec?: NodeSpec;
  readonly status?: NodeStatus;
}

export type NodeSpec = Wire<V1NodeSpec>;
export type NodeStatus = Wire<V1NodeStatus>;
export type NodeAddress = Wire<V1NodeAddress>;
export type NodeCondition = Wire<V1NodeCondition>;
export type NodeSystemInfo = Wire<V1NodeSystemInfo>;
export type NodeRuntimeHandler = Wire<V1NodeRuntimeHandler>;
export type NodeImage = Wire<V1ContainerImage>;
export type AttachedVolume = Wire<V1AttachedVolume>;
export type Taint = Wire<V1Taint>;
export type Lease = Wire<V1Lease>;

/** RFC 3339 with whole seconds, as Kubernetes writes `metav1.Time`. */
export function wireTime(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, 19)}Z`;
}
