/** Rules for the metadata of a pod: names, labels, annotations, owners. */
import { Buffer } from 'node:buffer';
import { checkDns1123Label, checkDns1123Subdomain, checkQualifiedName } from '../names.ts';
import { type FieldErrors, keyPath } from './field-error.ts';
import { checkLabels } from './label-rules.ts';
import { checkDescendingPath } from './path-rules.ts';
import { isBlank, maxInt32 } from './rule-context.ts';
import type { ObjectMeta, OwnerReference, PodSpec } from './unvalidated-pod.ts';

/** Keys and values of all annotations together. */
const maxAnnotationBytes = 256 * 1024;

const podAppArmor = 'container.apparmor.security.beta.kubernetes.io/';
const podSeccomp = 'seccomp.security.alpha.kubernetes.io/pod';
const containerSeccomp = 'container.seccomp.security.alpha.kubernetes.io/';
const mirrorPod = 'kubernetes.io/config.mirror';
const deletionCost = 'controller.kubernetes.io/pod-deletion-cost';

export function checkMetadata(errors: FieldErrors, metadata: ObjectMeta | undefined, spec: PodSpec): void {
  const path = 'metadata';
  const meta = metadata ?? {};
  if (meta.generateName) {
    // Generated names get a suffix, so a prefix may end in a hyphen.
    const prefix = meta.generateName.replace(/-$/, 'a');
    errors.problems(`${path}.generateName`, meta.generateName, checkDns1123Subdomain(prefix));
  }
  if (meta.name) errors.problems(`${path}.name`, meta.name, checkDns1123Subdomain(meta.name));
  else if (!meta.generateName) errors.required(`${path}.name`, 'name or generateName is required');
  if (meta.namespace) errors.problems(`${path}.namespace`, meta.namespace, checkDns1123Label(meta.namespace));
  else errors.required(`${path}.namespace`);
  errors.nonNegative(`${path}.generation`, meta.generation);
  checkLabels(errors, `${path}.labels`, meta.labels);
  checkAnnotations(errors, `${path}.annotations`, meta.annotations);
  checkPodAnnotations(errors, `${path}.annotations`, meta.annotations ?? {}, spec);
  checkOwners(errors, `${path}.ownerReferences`, meta.ownerReferences ?? []);
  for (const [index, finalizer] of (meta.finalizers ?? []).entries()) {
    errors.problems(`${path}.finalizers[${index}]`, finalizer, checkQualifiedName(finalizer));
  }
}

export function checkAnnotations(
  errors: FieldErrors,
  path: string,
  annotations: Readonly<Record<string, string>> | undefined,
): void {
  let bytes = 0;
  for (const [key, value] of Object.entries(annotations ?? {})) {
    // Keys are compared without regard to case, so capitals are allowed in the prefix too.
    errors.problems(path, key, checkQualifiedName(key.toLowerCase()));
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (bytes > maxAnnotationBytes) errors.tooLong(path, maxAnnotationBytes);
}

function checkOwners(errors: FieldErrors, path: string, owners: readonly OwnerReference[]): void {
  let controller: OwnerReference | undefined;
  owners.forEach((owner, index) => {
    const at = `${path}[${index}]`;
    if (isBlank(owner.apiVersion)) errors.required(`${at}.apiVersion`);
    else if (owner.apiVersion.split('/').length > 2) {
      errors.invalid(`${at}.apiVersion`, owner.apiVersion, 'must be <group>/<version> or <version>');
    }
    if (isBlank(owner.kind)) errors.required(`${at}.kind`);
    if (isBlank(owner.name)) errors.required(`${at}.name`);
    if (isBlank(owner.uid)) errors.required(`${at}.uid`);
    if (owner.apiVersion === 'v1' && owner.kind === 'Event') {
      errors.invalid(at, owner, 'an Event cannot own other objects');
    }
    if (owner.controller !== true) return;
    if (controller) {
      errors.invalid(path, owners, 'only one owner can be the controller, but several say they are');
    }
    controller ??= owner;
  });
}

/** Annotations that a kubelet reads, or that were fields in the making. */
function checkPodAnnotations(
  errors: FieldErrors,
  path: string,
  annotations: Readonly<Record<string, string>>,
  spec: PodSpec,
): void {
  if (annotations[mirrorPod] !== undefined && isBlank(spec.nodeName)) {
    errors.invalid(keyPath(path, mirrorPod), annotations[mirrorPod], 'a mirror pod must have spec.nodeName');
  }
  const cost = annotations[deletionCost];
  if (cost !== undefined && !isInt32Text(cost)) {
    errors.invalid(keyPath(path, deletionCost), cost, 'must be a whole number of 32 bits');
  }
  const containers = new Set(
    [...(spec.containers ?? []), ...(spec.initContainers ?? []), ...(spec.ephemeralContainers ?? [])].map(
      (container) => container.name,
    ),
  );
  for (const [key, value] of Object.entries(annotations)) {
    const at = keyPath(path, key);
    if (key === podSeccomp || key.startsWith(containerSeccomp)) checkSeccompText(errors, at, value);
    if (!key.startsWith(podAppArmor)) continue;
    if (!containers.has(key.slice(podAppArmor.length))) {
      errors.invalid(at, key.slice(podAppArmor.length), 'the pod has no container of this name');
    }
    if (
      value !== '' &&
      value !== 'runtime/default' &&
      value !== 'unconfined' &&
      !/^localhost\/./.test(value)
    ) {
      errors.invalid(at, value, 'must be runtime/default, unconfined or localhost/<profile>');
    }
  }
}

function checkSeccompText(errors: FieldErrors, path: string, value: string): void {
  if (value === 'runtime/default' || value === 'docker/default' || value === 'unconfined') return;
  if (value.startsWith('localhost/')) {
    checkDescendingPath(errors, path, value.slice('localhost/'.length));
    return;
  }
  errors.invalid(path, value, 'must be a valid seccomp profile');
}

function isInt32Text(text: string): boolean {
  return /^(?:0|-?[1-9]\d{0,9})$/.test(text) && Math.abs(Number(text)) <= maxInt32;
}
