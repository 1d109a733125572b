/** Rules for the containers of a pod: regular, init (sidecars among them) and ephemeral ones. */
import { checkDns1123Label, checkPortName, checkPortNumber } from '../names.ts';
import { checkEnv, checkEnvFrom } from './env-rules.ts';
import type { FieldErrors } from './field-error.ts';
import { checkLifecycle, checkProbes } from './handler-rules.ts';
import { checkContainerResources, checkResizePolicy } from './resource-rules.ts';
import { isBlank, isEmptyList, type RuleContext } from './rule-context.ts';
import { checkSecurityContext } from './security-context-rules.ts';
import type { Container, ContainerPort, EphemeralContainer } from './unvalidated-pod.ts';
import { checkVolumeDevices, checkVolumeMounts } from './volume-mount-rules.ts';

const pullPolicies = ['Always', 'IfNotPresent', 'Never'];
const restartPolicies = ['Always', 'OnFailure', 'Never'];
const maxRestartRules = 20;
const maxExitCodes = 255;
const onlySidecars = 'may not be set for init containers without restartPolicy=Always';

export function checkContainers(context: RuleContext): void {
  const { errors, spec } = context;
  const names = new Set<string>();
  if (isEmptyList(spec.containers)) errors.required('spec.containers');
  const hostPorts = new Set<string>();
  spec.containers?.forEach((container, index) => {
    const path = `spec.containers[${index}]`;
    checkContainer(context, path, container, names);
    if (container.lifecycle) checkLifecycle(context, `${path}.lifecycle`, container.lifecycle);
    checkProbes(context, path, container);
    checkHostPorts(errors, `${path}.ports`, container.ports, hostPorts);
  });
  spec.initContainers?.forEach((container, index) => {
    const path = `spec.initContainers[${index}]`;
    checkContainer(context, path, container, names);
    checkInitContainer(context, path, container);
    // Init containers run one at a time, so each may use a port again.
    checkHostPorts(errors, `${path}.ports`, container.ports, new Set());
  });
  const targets = new Set(names);
  spec.ephemeralContainers?.forEach((container, index) => {
    checkEphemeralContainer(context, `spec.ephemeralContainers[${index}]`, container, { names, targets });
  });
}

/** What holds for every kind of container. */
function checkContainer(context: RuleContext, path: string, container: Container, names: Set<string>): void {
  const { errors } = context;
  if (isBlank(container.name)) errors.required(`${path}.name`);
  else {
    errors.problems(`${path}.name`, container.name, checkDns1123Label(container.name));
    if (names.has(container.name)) errors.duplicate(`${path}.name`, container.name);
    names.add(container.name);
  }
  if (isBlank(container.image)) errors.required(`${path}.image`);
  else if (container.image !== undefined && container.image.trim() !== container.image) {
    errors.invalid(`${path}.image`, container.image, 'must not begin or end with white space');
  }
  errors.oneOf(`${path}.imagePullPolicy`, container.imagePullPolicy, pullPolicies);
  errors.oneOf(`${path}.terminationMessagePolicy`, container.terminationMessagePolicy, [
    'FallbackToLogsOnError',
    'File',
  ]);
  checkPorts(errors, `${path}.ports`, container.ports);
  checkEnv(context, `${path}.env`, container.env);
  checkEnvFrom(errors, `${path}.envFrom`, container.envFrom);
  checkVolumeMounts(context, `${path}.volumeMounts`, container);
  checkVolumeDevices(context, `${path}.volumeDevices`, container);
  if (container.resources) checkContainerResources(context, `${path}.resources`, container.resources);
  const restartPolicy = container.restartPolicy ?? context.spec.restartPolicy;
  checkResizePolicy(context, `${path}.resizePolicy`, container, restartPolicy);
  checkRestartRules(context, path, container);
  checkSecurityContext(context, `${path}.securityContext`, container);
}

function checkPorts(errors: FieldErrors, path: string, ports: readonly ContainerPort[] | undefined): void {
  const names = new Set<string>();
  ports?.forEach(({ name, containerPort, hostPort, protocol }, index) => {
    const at = `${path}[${index}]`;
    if (name) {
      const problems = checkPortName(name);
      errors.problems(`${at}.name`, name, problems);
      if (problems.length === 0 && names.has(name)) errors.duplicate(`${at}.name`, name);
      names.add(name);
    }
    if (!containerPort) errors.required(`${at}.containerPort`);
    else errors.problems(`${at}.containerPort`, containerPort, checkPortNumber(containerPort));
    if (hostPort) errors.problems(`${at}.hostPort`, hostPort, checkPortNumber(hostPort));
    errors.oneOf(`${at}.protocol`, protocol, ['SCTP', 'TCP', 'UDP']);
  });
}

function checkHostPorts(
  errors: FieldErrors,
  path: string,
  ports: readonly ContainerPort[] | undefined,
  taken: Set<string>,
): void {
  ports?.forEach(({ hostPort, hostIP = '', protocol = 'TCP' }, index) => {
    if (!hostPort) return;
    const key = `${protocol}/${hostIP}/${hostPort}`;
    if (taken.has(key)) errors.duplicate(`${path}[${index}].hostPort`, key);
    taken.add(key);
  });
}

function checkRestartRules({ errors }: RuleContext, path: string, container: Container): void {
  const { restartPolicy, restartPolicyRules: rules } = container;
  errors.optionalOneOf(`${path}.restartPolicy`, restartPolicy, restartPolicies);
  if (rules === undefined || rules.length === 0) return;
  const at = `${path}.restartPolicyRules`;
  if (restartPolicy === undefined) {
    errors.required(`${path}.restartPolicy`, 'must be set when there are restartPolicyRules');
  }
  if (rules.length > maxRestartRules) errors.tooMany(at, rules.length, maxRestartRules);
  rules.forEach(({ action, exitCodes }, index) => {
    errors.oneOf(`${at}[${index}].action`, action, ['Restart', 'RestartAllContainers']);
    if (!exitCodes) {
      errors.required(`${at}[${index}].exitCodes`);
      return;
    }
    errors.oneOf(`${at}[${index}].exitCodes.operator`, exitCodes.operator, ['In', 'NotIn']);
    const codes = exitCodes.values?.length ?? 0;
    if (codes > maxExitCodes) errors.tooMany(`${at}[${index}].exitCodes.values`, codes, maxExitCodes);
  });
}

function checkInitContainer(context: RuleContext, path: string, container: Container): void {
  const { errors } = context;
  if (container.restartPolicy === 'Always') {
    if (container.lifecycle) checkLifecycle(context, `${path}.lifecycle`, container.lifecycle);
    checkProbes(context, path, container);
    return;
  }
  for (const field of ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'] as const) {
    if (container[field]) errors.forbidden(`${path}.${field}`, onlySidecars);
  }
}

/** An ephemeral container joins a running pod, so it cannot change what the pod needs. */
const forbiddenForEphemeral = [
  'ports',
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'lifecycle',
  'resources',
  'resizePolicy',
  'restartPolicy',
  'restartPolicyRules',
] as const satisfies readonly (keyof EphemeralContainer)[];

function checkEphemeralContainer(
  context: RuleContext,
  path: string,
  container: EphemeralContainer,
  { names, targets }: { readonly names: Set<string>; readonly targets: ReadonlySet<string> },
): void {
  const { errors } = context;
  const allowed: EphemeralContainer = { ...container };
  for (const field of forbiddenForEphemeral) {
    const value = container[field];
    delete allowed[field];
    if (value === undefined || (Array.isArray(value) && value.length === 0)) continue;
    if (typeof value === 'object' && Object.keys(value).length === 0) continue;
    errors.forbidden(`${path}.${field}`, 'cannot be set for an ephemeral container');
  }
  checkContainer(context, path, allowed, names);
  container.volumeMounts?.forEach((mount, index) => {
    for (const field of ['subPath', 'subPathExpr'] as const) {
      if (!mount[field]) continue;
      const at = `${path}.volumeMounts[${index}].${field}`;
      errors.forbidden(at, 'cannot be set for an ephemeral container');
    }
  });
  if (container.targetContainerName && !targets.has(container.targetContainerName)) {
    errors.notFound(`${path}.targetContainerName`, container.targetContainerName);
  }
}
