/**
 * How much of the node's disk a pod may fill: the size limits of its emptyDir volumes, the ephemeral-storage
 * limits of its containers, and the sum of these. Pure.
 */
import { containerLimits, podLimits } from '../kubernetes/pod-resources.ts';
import { compareQuantities, formatQuantity, quantityOf, tryParseQuantity } from '../kubernetes/quantity.ts';
import type { PodSpec, Volume } from '../kubernetes/types.ts';

const resource = 'ephemeral-storage';

/** What a pod has on the node's disk, in bytes. */
export interface LocalStorageFigures {
  /** By volume name; every volume that was measured. */
  readonly volumes: ReadonlyMap<string, number>;
  /** By container name. */
  readonly logs: ReadonlyMap<string, number>;
  /** By container name; empty where the runtime keeps them on another file system than the node's own. */
  readonly writableLayers: ReadonlyMap<string, number>;
}

/** A limit that a pod is over. */
export interface ExceededLimit {
  /** Kubernetes' name of the limit, a label of `kubelet_evictions`. */
  readonly signal: 'emptydirfs.limit' | 'ephemeralpodfs.limit' | 'ephemeralcontainerfs.limit';
  /** The message of the eviction; Kubernetes' own, the space at its end included. */
  readonly message: string;
}

/** True when some limit has to be watched. */
export function hasLocalStorageLimits(spec: PodSpec): boolean {
  return podLimits(spec).has(resource) || (spec.volumes ?? []).some((volume) => sizeLimit(volume));
}

/** The volume lives on the node's disk and goes with its pod: it counts against the pod's limit. */
export function isLocalEphemeral({ emptyDir, configMap }: Volume): boolean {
  return configMap !== undefined || (emptyDir !== undefined && (emptyDir.medium ?? '') === '');
}

/** The first limit the pod is over, in Kubernetes' order: volumes, the pod, its containers. */
export function exceededLimit(spec: PodSpec, figures: LocalStorageFigures): ExceededLimit | undefined {
  return exceededVolume(spec, figures) ?? exceededPod(spec, figures) ?? exceededContainer(spec, figures);
}

function exceededVolume(spec: PodSpec, { volumes }: LocalStorageFigures): ExceededLimit | undefined {
  for (const volume of spec.volumes ?? []) {
    const limit = sizeLimit(volume);
    const used = quantityOf(volumes.get(volume.name) ?? 0);
    if (limit === undefined || compareQuantities(used, limit) <= 0) continue;
    return {
      signal: 'emptydirfs.limit',
      message: `Usage of EmptyDir volume "${volume.name}" exceeds the limit "${formatQuantity(limit)}". `,
    };
  }
  return undefined;
}

function exceededPod(spec: PodSpec, figures: LocalStorageFigures): ExceededLimit | undefined {
  const limit = podLimits(spec).get(resource);
  if (limit === undefined || compareQuantities(quantityOf(podUsage(spec, figures)), limit) <= 0)
    return undefined;
  return {
    signal: 'ephemeralpodfs.limit',
    message: `Pod ephemeral local storage usage exceeds the total limit of containers ${formatQuantity(limit)}. `,
  };
}

/** Writable layers, logs and volumes on disk, in bytes. */
export function podUsage(spec: PodSpec, { volumes, logs, writableLayers }: LocalStorageFigures): number {
  const local = (spec.volumes ?? []).filter(isLocalEphemeral).map(({ name }) => volumes.get(name) ?? 0);
  return sum(local) + sum(logs.values()) + sum(writableLayers.values());
}

function exceededContainer(spec: PodSpec, figures: LocalStorageFigures): ExceededLimit | undefined {
  for (const container of spec.containers) {
    const limit = containerLimits(container).get(resource);
    if (limit === undefined || limit.nano === 0n) continue;
    const used = (figures.logs.get(container.name) ?? 0) + (figures.writableLayers.get(container.name) ?? 0);
    if (compareQuantities(quantityOf(used), limit) <= 0) continue;
    return {
      signal: 'ephemeralcontainerfs.limit',
      message: `Container ${container.name} exceeded its local ephemeral storage limit "${formatQuantity(limit)}". `,
    };
  }
  return undefined;
}

function sizeLimit({ emptyDir }: Volume) {
  const limit = tryParseQuantity(emptyDir?.sizeLimit);
  return limit && limit.nano > 0n ? limit : undefined;
}

function sum(amounts: Iterable<number>): number {
  let total = 0;
  for (const amount of amounts) total += amount;
  return total;
}
