/**
 * Rules for the volumes of a pod: their names, and that each comes from exactly one source. The rules of
 * each kind of source stand in tables, keyed by the field of the volume, so that no kind is forgotten.
 */
import { checkDns1123Label, checkDns1123Subdomain } from '../names.ts';
import { apiVolumeRules } from './api-volume-rules.ts';
import { localVolumeRules } from './local-volume-rules.ts';
import type { RuleContext } from './rule-context.ts';
import { storageVolumeRules } from './storage-volume-rules.ts';
import type { Volume } from './unvalidated-pod.ts';
import type { VolumeKind, VolumeRule, VolumeRules } from './volume-rule.ts';

const rules: VolumeRules<VolumeKind> = { ...localVolumeRules, ...apiVolumeRules, ...storageVolumeRules };

export function checkVolumes(context: RuleContext, podName: string | undefined): void {
  const { errors } = context;
  const names = new Set<string>();
  const claims = claimNames(context.spec.volumes);
  context.spec.volumes?.forEach((volume, index) => {
    const path = `spec.volumes[${index}]`;
    if (!volume.name) errors.required(`${path}.name`);
    else {
      errors.problems(`${path}.name`, volume.name, checkDns1123Label(volume.name));
      if (names.has(volume.name)) errors.duplicate(`${path}.name`, volume.name);
      names.add(volume.name);
    }
    checkSource(context, path, volume);
    if (volume.ephemeral && podName && volume.name) {
      // The claim is made under this name, beside those that the pod names itself.
      const claim = `${podName}-${volume.name}`;
      errors.problems(
        `${path}.name`,
        volume.name,
        checkDns1123Subdomain(claim).map((m) => `claim name "${claim}": ${m}`),
      );
      if (claims.has(claim)) {
        errors.invalid(`${path}.name`, volume.name, `conflicts with the claim "${claim}" of another volume`);
      }
    }
  });
}

function claimNames(volumes: readonly Volume[] | undefined): Set<string> {
  const claims = volumes?.map((volume) => volume.persistentVolumeClaim?.claimName);
  return new Set(claims?.filter((name) => name !== undefined));
}

function checkSource(context: RuleContext, path: string, volume: Volume): void {
  const { errors } = context;
  const given = (Object.keys(rules) as VolumeKind[]).filter((kind) => volume[kind] !== undefined);
  const [first, ...others] = given;
  if (first === undefined) {
    errors.required(path, 'must specify a volume type');
    return;
  }
  applyRule(context, `${path}.${first}`, first, volume);
  for (const kind of others) errors.forbidden(`${path}.${kind}`, 'may not specify more than 1 volume type');
}

function applyRule<K extends VolumeKind>(
  context: RuleContext,
  path: string,
  kind: K,
  volume: Pick<Volume, K>,
): void {
  const rule: VolumeRule<K> = rules[kind];
  const source = volume[kind];
  if (source) rule(context, path, source);
}
