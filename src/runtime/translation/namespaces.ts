/**
 * Which kernel namespaces a pod and its containers share: with the node, within the pod, or with nobody.
 */
import type { PodSpec } from '../../kubernetes/types.ts';
import { type IDMapping, NamespaceMode, type NamespaceOption, type UserNamespace } from '../generated/cri.ts';

/** The range of node ids that a pod with a user namespace of its own lives in. */
export interface UserNamespaceRange {
  /** What id 0 in the pod is on the node. */
  readonly hostId: number;
  /** How many ids, 65536 as a rule. */
  readonly length: number;
}

/** Namespaces of the sandbox, and of every container but one that targets another. */
export function podNamespaces(spec: PodSpec, range?: UserNamespaceRange): NamespaceOption {
  return {
    network: spec.hostNetwork ? NamespaceMode.NODE : NamespaceMode.POD,
    pid: pidNamespace(spec),
    ipc: spec.hostIPC ? NamespaceMode.NODE : NamespaceMode.POD,
    targetId: '',
    usernsOptions: userNamespace(spec, range),
  };
}

/**
 * Namespaces of a container. An ephemeral container with a target joins that container's processes;
 * `targetId` is the target's runtime id.
 */
export function containerNamespaces(
  spec: PodSpec,
  { range, targetId }: { range?: UserNamespaceRange | undefined; targetId?: string | undefined },
): NamespaceOption {
  const pod = podNamespaces(spec, range);
  return targetId ? { ...pod, pid: NamespaceMode.TARGET, targetId } : pod;
}

/** The pod's mapping for id-mapped mounts; empty on the node's own user namespace. */
export function idMappings(spec: PodSpec, range: UserNamespaceRange | undefined): IDMapping[] {
  if (spec.hostUsers !== false || !range) return [];
  return [{ hostId: range.hostId, containerId: 0, length: range.length }];
}

function pidNamespace(spec: PodSpec): NamespaceMode {
  if (spec.hostPID) return NamespaceMode.NODE;
  return spec.shareProcessNamespace ? NamespaceMode.POD : NamespaceMode.CONTAINER;
}

function userNamespace(spec: PodSpec, range: UserNamespaceRange | undefined): UserNamespace {
  const mappings = idMappings(spec, range);
  if (mappings.length === 0) return { mode: NamespaceMode.NODE, uids: [], gids: [] };
  return { mode: NamespaceMode.POD, uids: mappings, gids: mappings };
}
