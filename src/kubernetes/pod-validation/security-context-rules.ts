/** Rules for the security contexts of pods and containers. */
import { Buffer } from 'node:buffer';
import type { FieldErrors } from './field-error.ts';
import { checkDescendingPath } from './path-rules.ts';
import { isBlank, maxInt32, type RuleContext } from './rule-context.ts';
import type { Container, PodSecurityContext, PodSpec, SecurityContext } from './unvalidated-pod.ts';

type SeccompProfile = NonNullable<SecurityContext['seccompProfile']>;
type AppArmorProfile = NonNullable<SecurityContext['appArmorProfile']>;
type WindowsOptions = NonNullable<SecurityContext['windowsOptions']>;

const profileTypes = ['Localhost', 'RuntimeDefault', 'Unconfined'];
/** Linux' PATH_MAX without the closing NUL: an AppArmor profile's name is kept in a path. */
const maxProfileLength = 4095;
const sysctlName = /^(?:[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?$/;
const maxSysctlLength = 253;

function checkId(errors: FieldErrors, path: string, id: number | undefined): void {
  errors.range(path, id, 0, maxInt32);
}

export function checkPodSecurityContext(context: RuleContext, path: string, own: PodSecurityContext): void {
  const { errors } = context;
  checkId(errors, `${path}.runAsUser`, own.runAsUser);
  checkId(errors, `${path}.runAsGroup`, own.runAsGroup);
  checkId(errors, `${path}.fsGroup`, own.fsGroup);
  own.supplementalGroups?.forEach((group, index) => {
    checkId(errors, `${path}.supplementalGroups[${index}]`, group);
  });
  errors.optionalOneOf(`${path}.fsGroupChangePolicy`, own.fsGroupChangePolicy, ['OnRootMismatch', 'Always']);
  errors.optionalOneOf(`${path}.supplementalGroupsPolicy`, own.supplementalGroupsPolicy, ['Merge', 'Strict']);
  errors.optionalOneOf(`${path}.seLinuxChangePolicy`, own.seLinuxChangePolicy, ['MountOption', 'Recursive']);
  checkSysctls(context, `${path}.sysctls`, own.sysctls ?? []);
  if (own.seccompProfile) checkSeccomp(errors, `${path}.seccompProfile`, own.seccompProfile);
  if (own.appArmorProfile) checkAppArmor(errors, `${path}.appArmorProfile`, own.appArmorProfile);
  if (own.windowsOptions) checkWindowsOptions(errors, `${path}.windowsOptions`, own.windowsOptions);
}

function checkSysctls(
  context: RuleContext,
  path: string,
  sysctls: NonNullable<PodSecurityContext['sysctls']>,
): void {
  const { errors, spec } = context;
  const seen = new Set<string>();
  sysctls.forEach(({ name }, index) => {
    const at = `${path}[${index}].name`;
    if (isBlank(name)) {
      errors.required(at);
      return;
    }
    if (name.length > maxSysctlLength || !sysctlName.test(name)) {
      errors.invalid(
        at,
        name,
        `must have at most ${maxSysctlLength} characters, in parts of lower case letters, digits, - and _ joined by dots`,
      );
    } else checkSysctlNamespace(errors, at, name, spec);
    if (seen.has(name)) errors.duplicate(at, name);
    seen.add(name);
  });
}

/** A pod in a namespace of the host would change the host's own value. */
function checkSysctlNamespace(
  errors: FieldErrors,
  path: string,
  name: string,
  { hostNetwork, hostIPC }: Pick<PodSpec, 'hostNetwork' | 'hostIPC'>,
): void {
  const dotted = name.replaceAll('/', '.');
  if (hostNetwork && dotted.startsWith('net.')) {
    errors.invalid(path, name, 'may not be set when `hostNetwork` is true');
  }
  const isIpc = /^(?:kernel\.(?:shm|msg)|fs\.mqueue\.)/.test(dotted) || dotted === 'kernel.sem';
  if (hostIPC && isIpc) errors.invalid(path, name, 'may not be set when `hostIPC` is true');
}

function checkSeccomp(errors: FieldErrors, path: string, profile: SeccompProfile): void {
  errors.oneOf(`${path}.type`, profile.type, profileTypes);
  const file = profile.localhostProfile;
  if (profile.type === 'Localhost') {
    if (isBlank(file)) errors.required(`${path}.localhostProfile`, 'must be set when the type is Localhost');
    else if (file !== undefined) checkDescendingPath(errors, `${path}.localhostProfile`, file);
  } else if (file !== undefined) {
    errors.invalid(`${path}.localhostProfile`, file, 'can only be set when the type is Localhost');
  }
}

function checkAppArmor(errors: FieldErrors, path: string, profile: AppArmorProfile): void {
  errors.oneOf(`${path}.type`, profile.type, profileTypes);
  const at = `${path}.localhostProfile`;
  const name = profile.localhostProfile;
  if (profile.type !== 'Localhost') {
    if (name !== undefined) errors.invalid(at, name, 'can only be set when the type is Localhost');
  } else if (name === undefined || name.trim() === '') {
    errors.required(at, 'must be set when the type is Localhost');
  } else {
    if (name.trim() !== name) errors.invalid(at, name, 'must not begin or end with white space');
    if (Buffer.byteLength(name) > maxProfileLength) errors.tooLong(at, maxProfileLength);
  }
}

const maxCredentialSpecBytes = 64 * 1024;
const credentialSpecName = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

function checkWindowsOptions(errors: FieldErrors, path: string, options: WindowsOptions): void {
  const { gmsaCredentialSpecName: specName, gmsaCredentialSpec: spec, runAsUserName } = options;
  if (specName !== undefined && (specName.length > 253 || !credentialSpecName.test(specName))) {
    errors.invalid(`${path}.gmsaCredentialSpecName`, specName, 'must be a DNS subdomain');
  }
  if (spec !== undefined) {
    if (spec === '') errors.invalid(`${path}.gmsaCredentialSpec`, spec, 'must not be empty');
    else if (Buffer.byteLength(spec) > maxCredentialSpecBytes) {
      errors.tooLong(`${path}.gmsaCredentialSpec`, maxCredentialSpecBytes);
    }
  }
  if (runAsUserName !== undefined) checkWindowsUser(errors, `${path}.runAsUserName`, runAsUserName);
}

/** `user` or `domain\user`, within the lengths that Windows allows. */
function checkWindowsUser(errors: FieldErrors, path: string, name: string): void {
  if (name === '') {
    errors.invalid(path, name, 'must not be empty');
    return;
  }
  // oxlint-disable-next-line no-control-regex -- the rule is about control characters
  if (/[\u0000-\u001f\u007f]/.test(name)) {
    errors.invalid(path, name, 'must not contain control characters');
    return;
  }
  const parts = name.split('\\');
  if (parts.length > 2) {
    errors.invalid(path, name, 'must contain at most one backslash, between domain and user');
    return;
  }
  const user = parts.at(-1) ?? '';
  if (
    parts.length === 2 &&
    !/^(?:[A-Za-z0-9][-A-Za-z0-9._]{0,254}|NT AUTHORITY|NT SERVICE)$/i.test(parts[0]!)
  ) {
    errors.invalid(path, name, 'the domain must be a NetBIOS or DNS name');
  }
  if (user.length > 104) errors.invalid(path, name, 'the user name must have at most 104 characters');
  else if (/["/\\:;|=,+*?<>@[\]]/.test(user) || /^[. ]*$/.test(user)) {
    errors.invalid(
      path,
      name,
      'the user name must hold more than dots and blanks, and none of "/\\:;|=,+*?<>@[]',
    );
  }
}

export function checkSecurityContext(context: RuleContext, path: string, container: Container): void {
  const own = container.securityContext;
  if (!own) return;
  const { errors, spec } = context;
  checkId(errors, `${path}.runAsUser`, own.runAsUser);
  checkId(errors, `${path}.runAsGroup`, own.runAsGroup);
  if (own.seccompProfile) checkSeccomp(errors, `${path}.seccompProfile`, own.seccompProfile);
  if (own.appArmorProfile) checkAppArmor(errors, `${path}.appArmorProfile`, own.appArmorProfile);
  if (own.windowsOptions) checkWindowsOptions(errors, `${path}.windowsOptions`, own.windowsOptions);
  if (own.procMount !== undefined) {
    errors.optionalOneOf(`${path}.procMount`, own.procMount, ['Default', 'Unmasked']);
    if (own.procMount === 'Unmasked' && spec.hostUsers !== false) {
      errors.invalid(`${path}.procMount`, own.procMount, '`hostUsers` must be false to use `Unmasked`');
    }
  }
  if (own.allowPrivilegeEscalation !== false) return;
  if (own.privileged === true) {
    errors.invalid(path, own, 'cannot set `allowPrivilegeEscalation` to false and `privileged` to true');
  }
  if (own.capabilities?.add?.includes('CAP_SYS_ADMIN')) {
    errors.invalid(
      path,
      own,
      'cannot set `allowPrivilegeEscalation` to false and `capabilities.add` to CAP_SYS_ADMIN',
    );
  }
}
