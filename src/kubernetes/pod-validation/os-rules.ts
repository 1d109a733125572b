/** Rules that depend on the operating system a pod says it is for, and on Windows' host process pods. */

import { isBlank, type RuleContext } from './rule-context.ts';
import type { PodSecurityContext, PodSpec, SecurityContext } from './unvalidated-pod.ts';

const linuxOnlyInSpec = [
  'hostPID',
  'hostIPC',
  'hostUsers',
  'shareProcessNamespace',
  'resources',
] as const satisfies readonly (keyof PodSpec)[];

const linuxOnlyInPod = [
  'appArmorProfile',
  'fsGroup',
  'fsGroupChangePolicy',
  'runAsGroup',
  'runAsUser',
  'seLinuxChangePolicy',
  'seLinuxOptions',
  'seccompProfile',
  'supplementalGroups',
  'supplementalGroupsPolicy',
  'sysctls',
] as const satisfies readonly (keyof PodSecurityContext)[];

const linuxOnlyInContainer = [
  'allowPrivilegeEscalation',
  'appArmorProfile',
  'capabilities',
  'privileged',
  'procMount',
  'readOnlyRootFilesystem',
  'runAsGroup',
  'runAsUser',
  'seLinuxOptions',
  'seccompProfile',
] as const satisfies readonly (keyof SecurityContext)[];

interface Place {
  path: string;
  securityContext: SecurityContext | undefined;
}

export function checkOs(context: RuleContext): void {
  const { errors, spec } = context;
  const os = spec.os;
  checkHostProcess(context);
  if (!os) return;
  if (isBlank(os.name)) {
    errors.required('spec.os.name');
    return;
  }
  if (os.name === 'linux') forbidWindowsFields(context);
  else if (os.name === 'windows') forbidLinuxFields(context);
  else errors.notSupported('spec.os.name', os.name, ['linux', 'windows']);
}

/** The security contexts of all containers, with their paths. */
function places(spec: PodSpec): Place[] {
  return (['containers', 'initContainers', 'ephemeralContainers'] as const).flatMap((kind) =>
    (spec[kind] ?? []).map(({ securityContext }, index) => ({
      path: `spec.${kind}[${index}].securityContext`,
      securityContext,
    })),
  );
}

function forbidWindowsFields({ errors, spec }: RuleContext): void {
  const why = 'may not be set for a pod of `spec.os.name` linux';
  if (spec.securityContext?.windowsOptions) errors.forbidden('spec.securityContext.windowsOptions', why);
  for (const { path, securityContext } of places(spec)) {
    if (securityContext?.windowsOptions) errors.forbidden(`${path}.windowsOptions`, why);
  }
}

function forbidLinuxFields({ errors, spec }: RuleContext): void {
  const why = 'may not be set for a pod of `spec.os.name` windows';
  for (const field of linuxOnlyInSpec) {
    const value = spec[field];
    // The host's PID and IPC namespaces are refused only when wanted; false is what Windows does anyway.
    if (value === undefined || (value === false && (field === 'hostPID' || field === 'hostIPC'))) continue;
    errors.forbidden(`spec.${field}`, why);
  }
  for (const field of linuxOnlyInPod) {
    if (isSet(spec.securityContext?.[field])) errors.forbidden(`spec.securityContext.${field}`, why);
  }
  for (const { path, securityContext } of places(spec)) {
    for (const field of linuxOnlyInContainer) {
      if (isSet(securityContext?.[field])) errors.forbidden(`${path}.${field}`, why);
    }
  }
}

function isSet(value: unknown): boolean {
  return value !== undefined && !(Array.isArray(value) && value.length === 0);
}

/** Windows runs all containers of a pod in the host's silo, or none of them. */
function checkHostProcess({ errors, spec }: RuleContext): void {
  const ofPod = spec.securityContext?.windowsOptions?.hostProcess;
  let inHost = 0;
  const all = places(spec);
  for (const { path, securityContext } of all) {
    const own = securityContext?.windowsOptions?.hostProcess;
    if (ofPod !== undefined && own !== undefined && own !== ofPod) {
      errors.invalid(`${path}.windowsOptions.hostProcess`, own, `must be the same as for the pod (${ofPod})`);
    }
    if (own ?? ofPod) inHost++;
  }
  if (inHost === 0) return;
  if (inHost !== all.length) {
    errors.invalid(
      'spec.securityContext.windowsOptions.hostProcess',
      ofPod ?? false,
      'must be true for all containers of the pod or for none',
    );
  }
  if (spec.hostNetwork !== true) {
    errors.invalid('spec.hostNetwork', false, 'must be true when the pod has host process containers');
  }
}
