/** Rules for the spec of a pod as a whole; the parts have files of their own. */
import { checkDns1123Label, checkDns1123Subdomain } from '../names.ts';
import { checkContainers } from './container-rules.ts';
import { checkNetwork } from './network-rules.ts';
import { checkOs } from './os-rules.ts';
import { checkOverhead, checkPodResources } from './resource-rules.ts';
import { isBlank, isEmptyList, maxInt32, type RuleContext } from './rule-context.ts';
import { checkScheduling } from './scheduling-rules.ts';
import { checkPodSecurityContext } from './security-context-rules.ts';
import type { PodSpec } from './unvalidated-pod.ts';
import { checkVolumes } from './volume-rules.ts';

/** What validation looks up again and again, found once. */
export function lookUps(spec: PodSpec): Pick<RuleContext, 'volumes' | 'resourceClaims'> {
  const volumes = new Map<string, NonNullable<PodSpec['volumes']>[number]>();
  for (const volume of spec.volumes ?? []) {
    if (volume.name !== undefined && !volumes.has(volume.name)) volumes.set(volume.name, volume);
  }
  const claims = spec.resourceClaims?.map((claim) => claim.name).filter((name) => name !== undefined);
  return { volumes, resourceClaims: new Set(claims) };
}

export function checkSpec(
  context: RuleContext,
  podName: string | undefined,
  allowEphemeralContainers: boolean,
): void {
  const { errors, spec } = context;
  checkVolumes(context, podName);
  checkResourceClaims(context);
  checkContainers(context);
  if (!isEmptyList(spec.ephemeralContainers) && !allowEphemeralContainers) {
    errors.forbidden('spec.ephemeralContainers', 'cannot be set on create; they are added to a running pod');
  }
  checkPodResources(context);
  checkOverhead(errors, 'spec.overhead', spec.overhead);
  errors.oneOf('spec.restartPolicy', spec.restartPolicy, ['Always', 'OnFailure', 'Never']);
  if (spec.securityContext) checkPodSecurityContext(context, 'spec.securityContext', spec.securityContext);
  checkNetwork(context);
  checkScheduling(context);
  checkOs(context);
  checkNames(context);
  errors.range('spec.activeDeadlineSeconds', spec.activeDeadlineSeconds, 1, maxInt32);
  // A negative terminationGracePeriodSeconds is valid and means 1: old clients wrote it.
}

/** Names of other objects that the spec refers to. */
function checkNames({ errors, spec }: RuleContext): void {
  for (const field of ['serviceAccountName', 'nodeName', 'runtimeClassName'] as const) {
    const name = spec[field];
    // An empty runtime class is no name; the others may be left empty.
    if (name || (name === '' && field === 'runtimeClassName')) {
      errors.problems(`spec.${field}`, name, checkDns1123Subdomain(name));
    }
  }
}

function checkResourceClaims({ errors, spec }: RuleContext): void {
  const seen = new Set<string>();
  spec.resourceClaims?.forEach((claim, index) => {
    const at = `spec.resourceClaims[${index}]`;
    if (isBlank(claim.name)) errors.required(`${at}.name`);
    else {
      errors.problems(`${at}.name`, claim.name, checkDns1123Label(claim.name));
      if (seen.has(claim.name)) errors.duplicate(`${at}.name`, claim.name);
      seen.add(claim.name);
    }
    const { resourceClaimName, resourceClaimTemplateName } = claim;
    if (resourceClaimName !== undefined && resourceClaimTemplateName !== undefined) {
      errors.invalid(at, claim, 'may not have both resourceClaimName and resourceClaimTemplateName');
    } else if (resourceClaimName === undefined && resourceClaimTemplateName === undefined) {
      errors.invalid(at, claim, 'must have one of resourceClaimName and resourceClaimTemplateName');
    }
    for (const field of ['resourceClaimName', 'resourceClaimTemplateName'] as const) {
      const name = claim[field];
      if (name !== undefined) errors.problems(`${at}.${field}`, name, checkDns1123Subdomain(name));
    }
  });
}
