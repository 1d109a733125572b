/**
 * Fills in what a Pod manifest leaves out, as the API server of Kubernetes 1.36 does before it stores a pod,
 * so that the agent sees the same object whether a pod came from the API or from a file.
 *
 * Defaulting knows no errors: fields of a wrong type stay as they are, for validation to report. Doing it
 * twice changes nothing. What is particular to static pods (names, tolerations, annotations) is not here.
 */
import { isPodLevelResource } from './pod-resources.ts';
import {
  containerLimitTotals,
  containerRequestTotals,
  isHugePages,
  quantityIn,
} from './pod-validation/aggregate-resources.ts';
import { isRecord, normalizePod } from './pod-validation/pod-structure.ts';
import { formatQuantity } from './quantity.ts';
import type {
  Container,
  ContainerPort,
  EnvVar,
  EphemeralContainer,
  Lifecycle,
  PodManifest,
  PodSpec,
  Probe,
  Volume,
} from './types.ts';

type AnyContainer = Container | EphemeralContainer;

/** 0644, the mode of files in volumes that are made from API objects. */
const volumeFileMode = 0o644;

/** A copy of `manifest`, in normal form (no nulls, canonical quantities), with defaults filled in. */
export function defaultPod(manifest: PodManifest): PodManifest {
  const pod = normalizePod(manifest);
  pod.spec ??= {} as PodSpec;
  if (isRecord(pod.spec)) defaultSpec(pod.spec);
  return pod;
}

function defaultSpec(spec: PodSpec): void {
  fillEmpty(spec, 'restartPolicy', 'Always');
  fillEmpty(spec, 'dnsPolicy', 'ClusterFirst');
  fillEmpty(spec, 'schedulerName', 'default-scheduler');
  fillAbsent(spec, 'terminationGracePeriodSeconds', 30);
  fillAbsent(spec, 'securityContext', {});
  fillAbsent(spec, 'enableServiceLinks', true);
  // The older name of the field is kept equal to the newer one.
  if (spec.serviceAccount) fillEmpty(spec, 'serviceAccountName', spec.serviceAccount);
  if (spec.serviceAccountName) spec.serviceAccount = spec.serviceAccountName;

  for (const container of [...each(spec.initContainers), ...each(spec.containers)]) {
    defaultContainer(container, spec.hostNetwork === true);
    requestWhatIsLimited(container);
  }
  for (const container of each(spec.ephemeralContainers)) defaultContainer(container, false);
  for (const volume of each(spec.volumes)) defaultVolume(volume);
  defaultPodResources(spec);
}

function defaultContainer(container: AnyContainer, onHostNetwork: boolean): void {
  fillEmpty(container, 'imagePullPolicy', defaultPullPolicy(container.image));
  fillEmpty(container, 'terminationMessagePath', '/dev/termination-log');
  fillEmpty(container, 'terminationMessagePolicy', 'File');
  for (const port of each(container.ports)) defaultPort(port, onHostNetwork);
  for (const variable of each(container.env)) defaultEnvVar(variable);
  for (const probe of [container.livenessProbe, container.readinessProbe, container.startupProbe]) {
    if (isRecord(probe)) defaultProbe(probe);
  }
  if (isRecord(container.lifecycle)) defaultLifecycle(container.lifecycle);
}

/** `Always` when the image is named by the tag `latest`, given or implied, else `IfNotPresent`. */
function defaultPullPolicy(image: string | undefined): string {
  if (typeof image !== 'string' || image === '') return 'IfNotPresent';
  const [name = '', digest] = image.split('@', 2);
  const tagAt = name.indexOf(':', name.lastIndexOf('/') + 1);
  const tag = tagAt >= 0 ? name.slice(tagAt + 1) : digest === undefined ? 'latest' : '';
  return tag === 'latest' ? 'Always' : 'IfNotPresent';
}

function defaultPort(port: ContainerPort, onHostNetwork: boolean): void {
  fillEmpty(port, 'protocol', 'TCP');
  if (onHostNetwork && port.containerPort) fillEmpty(port, 'hostPort', port.containerPort);
}

function defaultEnvVar(variable: EnvVar): void {
  const source = variable.valueFrom;
  if (!isRecord(source)) return;
  if (isRecord(source.fieldRef)) fillEmpty(source.fieldRef, 'apiVersion', 'v1');
  if (isRecord(source.resourceFieldRef)) fillAbsent(source.resourceFieldRef, 'divisor', '0');
  if (isRecord(source.fileKeyRef)) fillAbsent(source.fileKeyRef, 'optional', false);
}

function defaultProbe(probe: Probe): void {
  fillEmpty(probe, 'timeoutSeconds', 1);
  fillEmpty(probe, 'periodSeconds', 10);
  fillEmpty(probe, 'successThreshold', 1);
  fillEmpty(probe, 'failureThreshold', 3);
  defaultHttpGet(probe);
  if (isRecord(probe.grpc)) fillAbsent(probe.grpc, 'service', '');
}

function defaultLifecycle(lifecycle: Lifecycle): void {
  for (const handler of [lifecycle.postStart, lifecycle.preStop]) {
    if (isRecord(handler)) defaultHttpGet(handler);
  }
}

function defaultHttpGet(handler: Pick<Probe, 'httpGet'>): void {
  if (!isRecord(handler.httpGet)) return;
  fillEmpty(handler.httpGet, 'path', '/');
  fillEmpty(handler.httpGet, 'scheme', 'HTTP');
}

/** A container that limits a resource and does not say how much of it it needs needs all of it. */
function requestWhatIsLimited(container: Container): void {
  const resources = container.resources;
  if (!isRecord(resources) || !isRecord(resources.limits)) return;
  const limits = Object.entries(resources.limits);
  if (limits.length === 0) return;
  fillAbsent(resources, 'requests', {});
  if (!isRecord(resources.requests)) return;
  for (const [name, limit] of limits) {
    if (quantityIn(resources.limits, name)) addMissing(resources.requests, name, limit);
  }
}

/** Pod-level resources that are set in part: the rest follows from the containers, then from the limits. */
function defaultPodResources(spec: PodSpec): void {
  const resources = spec.resources;
  if (!isRecord(resources)) return;
  const totalLimits = containerLimitTotals(spec);
  const hugePages = [...totalLimits].filter(([name, quantity]) => isHugePages(name) && quantity.nano > 0n);
  if (hugePages.length > 0) {
    fillAbsent(resources, 'limits', {});
    for (const [name, quantity] of hugePages) addMissing(resources.limits, name, formatQuantity(quantity));
  }
  if (!isRecord(resources.limits) || Object.keys(resources.limits).length === 0) return;
  fillAbsent(resources, 'requests', {});
  for (const [name, quantity] of containerRequestTotals(spec)) {
    // Huge pages cannot be promised more than once, so their request is the limit.
    if (isPodLevelResource(name) && !isHugePages(name)) {
      addMissing(resources.requests, name, formatQuantity(quantity));
    }
  }
  for (const [name, limit] of Object.entries(resources.limits)) {
    if (isPodLevelResource(name) && quantityIn(resources.limits, name)) {
      addMissing(resources.requests, name, limit);
    }
  }
}

/** Fields that name where a volume comes from: all but `name`. */
function hasVolumeSource(volume: Volume): boolean {
  return Object.keys(volume).some((field) => field !== 'name');
}

function defaultVolume(volume: Volume): void {
  if (!hasVolumeSource(volume)) volume.emptyDir = {};
  const source = <K extends keyof Volume>(kind: K) =>
    isRecord(volume[kind]) ? (volume[kind] as NonNullable<Volume[K]>) : undefined;

  whenSet(source('hostPath'), (hostPath) => fillAbsent(hostPath, 'type', ''));
  whenSet(source('secret'), (secret) => fillAbsent(secret, 'defaultMode', volumeFileMode));
  whenSet(source('configMap'), (configMap) => fillAbsent(configMap, 'defaultMode', volumeFileMode));
  whenSet(source('downwardAPI'), (downward) => {
    fillAbsent(downward, 'defaultMode', volumeFileMode);
    defaultDownwardItems(downward.items);
  });
  whenSet(source('projected'), (projected) => {
    fillAbsent(projected, 'defaultMode', volumeFileMode);
    for (const part of each(projected.sources)) {
      if (isRecord(part.downwardAPI)) defaultDownwardItems(part.downwardAPI.items);
      if (isRecord(part.serviceAccountToken)) fillAbsent(part.serviceAccountToken, 'expirationSeconds', 3600);
    }
  });
  whenSet(source('image'), (image) => fillEmpty(image, 'pullPolicy', defaultPullPolicy(image.reference)));
  whenSet(source('ephemeral'), (ephemeral) => {
    const template: unknown = ephemeral.volumeClaimTemplate;
    if (isRecord(template) && isRecord(template['spec'])) {
      fillAbsent(template['spec'] as { volumeMode?: string }, 'volumeMode', 'Filesystem');
    }
  });
  whenSet(source('iscsi'), (iscsi) => fillEmpty(iscsi, 'iscsiInterface', 'default'));
  whenSet(source('rbd'), (rbd) => {
    fillEmpty(rbd, 'pool', 'rbd');
    fillEmpty(rbd, 'user', 'admin');
    fillEmpty(rbd, 'keyring', '/etc/ceph/keyring');
  });
  whenSet(source('azureDisk'), (disk) => {
    fillAbsent(disk, 'cachingMode', 'ReadWrite');
    fillAbsent(disk, 'kind', 'Shared');
    fillAbsent(disk, 'fsType', 'ext4');
    fillAbsent(disk, 'readOnly', false);
  });
  whenSet(source('scaleIO'), (scaleIo) => {
    fillEmpty(scaleIo, 'storageMode', 'ThinProvisioned');
    fillEmpty(scaleIo, 'fsType', 'xfs');
  });
}

type DownwardItems = NonNullable<NonNullable<Volume['downwardAPI']>['items']>;

function defaultDownwardItems(items: DownwardItems | undefined): void {
  for (const item of each(items)) {
    if (isRecord(item.fieldRef)) fillEmpty(item.fieldRef, 'apiVersion', 'v1');
    if (isRecord(item.resourceFieldRef)) fillAbsent(item.resourceFieldRef, 'divisor', '0');
  }
}

/** The objects of a list, also where the manifest has something else there. */
function each<T>(list: T[] | undefined): T[] {
  return Array.isArray(list) ? list.filter((item) => isRecord(item)) : [];
}

function whenSet<T>(part: T | undefined, fill: (part: T) => void): void {
  if (part !== undefined) fill(part);
}

/** For fields where the API tells "absent" from "empty". */
function fillAbsent<T extends object, K extends keyof T>(target: T, field: K, value: T[K]): void {
  if (target[field] === undefined) target[field] = value;
}

/** For fields where an empty text or 0 means the same as nothing. */
function fillEmpty<T extends object, K extends keyof T>(target: T, field: K, value: T[K]): void {
  const present: unknown = target[field];
  if (present === undefined || present === '' || present === 0) target[field] = value;
}

function addMissing(list: unknown, name: string, value: string): void {
  if (!isRecord(list) || Object.hasOwn(list, name)) return;
  // A resource named `__proto__` must not reach the prototype.
  Object.defineProperty(list, name, { value, enumerable: true, configurable: true, writable: true });
}
