/** Rules for requests and limits, of containers and of the pod as a whole. */
import { checkQualifiedName } from '../names.ts';
import { isPodLevelResource } from '../pod-resources.ts';
import {
  compareQuantities,
  formatQuantity,
  type Quantity,
  quantityOf,
  tryParseQuantity,
} from '../quantity.ts';
import {
  containerLimitTotals,
  containerRequestTotals,
  isHugePages,
  quantityIn,
} from './aggregate-resources.ts';
import { type FieldErrors, keyPath } from './field-error.ts';
import { isBlank, type RuleContext } from './rule-context.ts';
import type { Container, PodSpec, ResourceRequirements } from './unvalidated-pod.ts';

const standardResources = ['cpu', 'memory', 'ephemeral-storage'];

/** A resource that a device plugin or an operator adds: `<domain>/<name>` outside of Kubernetes' domain. */
function isExtended(name: string): boolean {
  return name.includes('/') && !isNative(name) && !name.startsWith('requests.');
}

/** Kubernetes' own resources have no domain, or one under `kubernetes.io/`. */
function isNative(name: string): boolean {
  return !name.includes('/') || name.includes('kubernetes.io/');
}

/** Whether more of a resource may be limited than is there: not of things that are counted out. */
function allowsOvercommit(name: string): boolean {
  return isNative(name) && !isHugePages(name);
}

export function checkContainerResources(
  context: RuleContext,
  path: string,
  resources: ResourceRequirements,
): void {
  checkClaims(context, `${path}.claims`, resources.claims);
  checkRequestsAndLimits(context.errors, path, resources, checkContainerResourceName);
  checkHugePagesCompany(context.errors, path, resources);
}

function checkClaims(context: RuleContext, path: string, claims: ResourceRequirements['claims']): void {
  const { errors, resourceClaims } = context;
  const seen = new Map<string, Set<string>>();
  claims?.forEach(({ name, request = '' }, index) => {
    if (isBlank(name)) {
      errors.required(`${path}[${index}].name`);
      return;
    }
    const requests = seen.get(name) ?? new Set<string>();
    seen.set(name, requests);
    if (requests.has(request)) errors.duplicate(`${path}[${index}]`, claims[index]);
    else if (requests.has('') || (request === '' && requests.size > 0)) {
      errors.duplicate(`${path}[${index}]`, claims[index]);
    }
    requests.add(request);
    if (!resourceClaims.has(name)) errors.notFound(`${path}[${index}].name`, name);
  });
}

type NameCheck = (errors: FieldErrors, path: string, name: string) => void;

function checkContainerResourceName(errors: FieldErrors, path: string, name: string): void {
  const problems = checkQualifiedName(name);
  if (problems.length > 0) errors.problems(path, name, problems);
  else if (!name.includes('/')) {
    if (!standardResources.includes(name) && !isHugePages(name)) {
      errors.invalid(
        path,
        name,
        `must be a standard resource for containers (${standardResources.join(', ')}, hugepages-<size>) or <domain>/<name>`,
      );
    }
  } else if (!isNative(name) && !isExtendedName(name)) {
    errors.invalid(
      path,
      name,
      'must be an extended resource name: <domain>/<name>, not starting with requests.',
    );
  }
}

/** Quotas count extended resources under `requests.<name>`, so that must be a name as well. */
function isExtendedName(name: string): boolean {
  return isExtended(name) && checkQualifiedName(`requests.${name}`).length === 0;
}

function checkRequestsAndLimits(
  errors: FieldErrors,
  path: string,
  resources: ResourceRequirements,
  checkName: NameCheck,
): void {
  for (const kind of ['limits', 'requests'] as const) {
    for (const [name, text] of Object.entries(resources[kind] ?? {})) {
      // A request that defaulting took over from the limit has no mistakes of its own.
      if (kind === 'requests' && resources.limits?.[name] === text) continue;
      const at = keyPath(`${path}.${kind}`, name);
      checkName(errors, at, name);
      checkAmount(errors, at, name, text);
    }
  }
  for (const [name, text] of Object.entries(resources.requests ?? {})) {
    const request = tryParseQuantity(text);
    const limit = quantityIn(resources.limits, name);
    if (request) checkRequestAgainstLimit(errors, path, name, { request, limit });
  }
}

function checkRequestAgainstLimit(
  errors: FieldErrors,
  path: string,
  name: string,
  { request, limit }: { readonly request: Quantity; readonly limit: Quantity | undefined },
): void {
  const at = keyPath(`${path}.requests`, name);
  if (!limit) {
    if (!allowsOvercommit(name)) {
      errors.required(
        keyPath(`${path}.limits`, name),
        'a resource that cannot be overcommitted needs a limit',
      );
    }
    return;
  }
  const order = compareQuantities(request, limit);
  const shown = formatQuantity(limit);
  if (!allowsOvercommit(name) && order !== 0) {
    errors.invalid(at, formatQuantity(request), `must be equal to the ${name} limit of ${shown}`);
  } else if (order > 0) {
    errors.invalid(
      at,
      formatQuantity(request),
      `must be less than or equal to the ${name} limit of ${shown}`,
    );
  }
}

function checkAmount(errors: FieldErrors, path: string, name: string, text: string): void {
  const amount = tryParseQuantity(text);
  if (!amount) return;
  if (amount.nano < 0n) errors.invalid(path, text, 'must be greater than or equal to 0');
  else if (isExtended(name) && amount.nano % quantityOf(1).nano !== 0n) {
    errors.invalid(path, text, 'must be a whole number');
  } else if (isHugePages(name)) checkHugePageAmount(errors, path, name, amount);
}

function checkHugePageAmount(errors: FieldErrors, path: string, name: string, amount: Quantity): void {
  const sizeText = name.slice('hugepages-'.length);
  const size = sizeText.length <= 32 ? tryParseQuantity(sizeText) : undefined;
  if (!size || size.nano <= 0n) {
    errors.invalid(path, name, 'the size of huge pages must be a positive quantity such as 2Mi');
  } else if (amount.nano % size.nano !== 0n) {
    errors.invalid(path, formatQuantity(amount), `must be a multiple of the page size ${sizeText}`);
  }
}

/** Huge pages alone do not tell what else the container needs. */
function checkHugePagesCompany(errors: FieldErrors, path: string, resources: ResourceRequirements): void {
  const names = [...Object.keys(resources.limits ?? {}), ...Object.keys(resources.requests ?? {})];
  if (!names.some(isHugePages) || names.some((name) => name === 'cpu' || name === 'memory')) return;
  errors.forbidden(path, 'huge pages need cpu or memory beside them');
}

/** `spec.overhead`: amounts that are added to the pod's own. */
export function checkOverhead(errors: FieldErrors, path: string, overhead: PodSpec['overhead']): void {
  for (const [name, text] of Object.entries(overhead ?? {})) {
    checkContainerResourceName(errors, keyPath(path, name), name);
    checkAmount(errors, keyPath(path, name), name, text);
  }
}

/** Pod-level resources, and that what the containers say fits into them. */
export function checkPodResources(context: RuleContext): void {
  const { errors, spec } = context;
  const resources = spec.resources;
  if (!resources) return;
  const path = 'spec.resources';
  if (resources.claims !== undefined) errors.forbidden(`${path}.claims`, 'may not be set for the whole pod');
  checkRequestsAndLimits(errors, path, resources, (sink, at, name) => {
    if (!isPodLevelResource(name)) sink.notSupported(at, name, ['cpu', 'memory', 'hugepages-<size>']);
  });
  checkHugePagesCompany(errors, path, resources);
  for (const [name, total] of containerRequestTotals(spec)) {
    const request = quantityIn(resources.requests, name);
    if (!request || compareQuantities(request, total) >= 0) continue;
    errors.invalid(
      keyPath(`${path}.requests`, name),
      formatQuantity(request),
      `must be greater than or equal to the containers' requests together, ${formatQuantity(total)}`,
    );
  }
  for (const [name, total] of containerLimitTotals(spec)) {
    const limit = quantityIn(resources.limits, name);
    if (!isHugePages(name) || !limit || compareQuantities(limit, total) >= 0) continue;
    errors.invalid(
      keyPath(`${path}.limits`, name),
      formatQuantity(limit),
      `must be greater than or equal to the containers' limits together, ${formatQuantity(total)}`,
    );
  }
  spec.containers?.forEach((container, index) =>
    checkContainerWithinPod(errors, `spec.containers[${index}].resources.limits`, container, resources),
  );
  spec.initContainers?.forEach((container, index) =>
    checkContainerWithinPod(errors, `spec.initContainers[${index}].resources.limits`, container, resources),
  );
}

/** No single container may be limited to more than the whole pod. */
function checkContainerWithinPod(
  errors: FieldErrors,
  path: string,
  container: Container,
  podResources: ResourceRequirements,
): void {
  for (const name of Object.keys(podResources.limits ?? {})) {
    const podLimit = quantityIn(podResources.limits, name);
    const limit = quantityIn(container.resources?.limits, name);
    if (!podLimit || !limit || compareQuantities(limit, podLimit) <= 0) continue;
    errors.invalid(
      keyPath(path, name),
      formatQuantity(limit),
      `must be less than or equal to the pod's limit of ${formatQuantity(podLimit)}`,
    );
  }
}

/** Which resources of a container can change without a restart. */
export function checkResizePolicy(
  context: RuleContext,
  path: string,
  container: Container,
  effectiveRestartPolicy: string | undefined,
): void {
  const { errors } = context;
  const seen = new Set<string>();
  container.resizePolicy?.forEach(({ resourceName, restartPolicy }, index) => {
    const at = `${path}[${index}]`;
    errors.oneOf(`${at}.resourceName`, resourceName, ['cpu', 'memory']);
    if (resourceName !== undefined && seen.has(resourceName)) errors.duplicate(at, resourceName);
    if (resourceName !== undefined) seen.add(resourceName);
    errors.oneOf(`${at}.restartPolicy`, restartPolicy, ['NotRequired', 'RestartContainer']);
    if (effectiveRestartPolicy === 'Never' && restartPolicy === 'RestartContainer') {
      errors.invalid(
        `${at}.restartPolicy`,
        restartPolicy,
        'must be NotRequired when the container never restarts',
      );
    }
  });
}
