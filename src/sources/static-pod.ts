/**
 * Makes the pod that runs from the Pod manifest of a file or URL: checks it, fills in defaults, and gives
 * it what the API server would have given: uid, namespace, node, and a name that is unique in the cluster.
 * Pure; never throws on any input.
 *
 * Differs from the kubelet: the uid hashes the manifest as canonical JSON (order of keys, comments and
 * layout do not matter, and neither do defaults, so an upgrade of the agent changes no uid), where Go
 * hashes a dump of its own structures. Fields that only the API server may set (deletion, mirror
 * annotation, status) are dropped, and a uid must be fit for a file name.
 */

import { fnv1a128Hex, stableJson } from '../kubernetes/hash.ts';
import { isObject } from '../kubernetes/json-object.ts';
import { checkDns1123Subdomain } from '../kubernetes/names.ts';
import { defaultPod } from '../kubernetes/pod-defaults.ts';
import { podAnnotations, systemCriticalPriority } from '../kubernetes/pod-identity.ts';
import {
  type FieldError,
  staticPodReferences,
  validatePod,
} from '../kubernetes/pod-validation/pod-validation.ts';
import type { Pod, PodManifest, PodSpec, Toleration } from '../kubernetes/types.ts';
import type { StaticSource } from './manifest-error.ts';

export interface StaticPodContext {
  readonly source: StaticSource;
  /** Path or URL; part of the uid. */
  readonly origin: string;
  readonly nodeName: string;
  /** Epoch ms; becomes annotation `kubernetes.io/config.seen`. */
  readonly seenAt: number;
  /** Whether a Kubernetes feature gate is on. */
  readonly featureEnabled: (gate: string) => boolean;
}

export type StaticPodResult =
  | { readonly pod: Pod; readonly problems?: undefined }
  | { readonly pod?: undefined; readonly problems: readonly FieldError[] };

/** Static pods must stay on a node whatever taints it gets. */
const tolerateEviction: Toleration = { operator: 'Exists', effect: 'NoExecute' };

/** The two classes every cluster has; others are objects of the API, which a static pod cannot ask. */
const knownPriorities: Readonly<Record<string, number>> = {
  'system-node-critical': systemCriticalPriority + 1000,
  'system-cluster-critical': systemCriticalPriority,
};

/** Letters, digits, dots and hyphens: the uid names directories. */
const uidPattern = /^[A-Za-z0-9](?:[-.A-Za-z0-9]{0,126}[A-Za-z0-9])?$/;

/** The pod of `manifest`, a Pod as parsed from JSON or YAML, or what is wrong with it. */
export function staticPod(manifest: PodManifest, context: StaticPodContext): StaticPodResult {
  const { featureEnabled, nodeName } = context;
  const drafted = defaultPod(manifest);
  const { metadata } = drafted;
  if (isObject(metadata) && (metadata.namespace ?? '') === '') metadata.namespace = 'default';
  const found = validatePod(drafted, { featureEnabled });
  if (found.length === 0 && featureEnabled('PreventStaticPodAPIReferences')) {
    found.push(...staticPodReferences(drafted));
  }
  if (found.length > 0) return { problems: found };

  const given = drafted.metadata ?? {};
  const name = staticPodName(given.name ?? '', nodeName);
  const problems: FieldError[] = [];
  if ((given.name ?? '') === '') {
    problems.push({
      path: 'metadata.name',
      type: 'Required',
      detail: 'a static pod needs a name of its own',
    });
  }
  for (const detail of checkDns1123Subdomain(name)) {
    problems.push({ path: 'metadata.name', type: 'Invalid', value: name, detail });
  }
  const ownUid = given.uid ?? '';
  if (ownUid !== '' && !uidPattern.test(ownUid)) {
    const detail = 'must be letters, digits, dots and hyphens, at most 128, and not begin or end with - or .';
    problems.push({ path: 'metadata.uid', type: 'Invalid', value: ownUid, detail });
  }
  if (problems.length > 0) return { problems };

  const uid = ownUid === '' ? generatedUid(manifest, context) : ownUid;
  const spec = drafted.spec as Pod['spec'];
  return {
    pod: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: staticMetadata(given, { name, namespace: given.namespace ?? 'default', uid }, context),
      spec: {
        ...spec,
        nodeName,
        tolerations: withToleration(spec.tolerations ?? []),
        ...priorityOf(spec),
      },
      status: { phase: 'Pending' },
    },
  };
}

/** What a static pod is called in the cluster: `<name>-<node>`, so that every node can have one. */
export function staticPodName(name: string, nodeName: string): string {
  return `${name}-${nodeName.toLowerCase()}`;
}

/** True when both come from the same manifest: they differ at most in when they were seen. */
export function sameStaticPod(a: Pod, b: Pod): boolean {
  const seen = a.metadata.annotations?.[podAnnotations.configSeen] ?? '';
  const annotations = { ...b.metadata.annotations, [podAnnotations.configSeen]: seen };
  return stableJson(a) === stableJson({ ...b, metadata: { ...b.metadata, annotations } });
}

function generatedUid(manifest: PodManifest, { nodeName, source, origin }: StaticPodContext): string {
  const place = source === 'file' ? `file:${origin}` : `url:${origin}`;
  return fnv1a128Hex(`${stableJson(manifest)}host:${nodeName}${place}`);
}

function staticMetadata(
  given: NonNullable<PodManifest['metadata']>,
  identity: { name: string; namespace: string; uid: string },
  { source, seenAt }: StaticPodContext,
): Pod['metadata'] {
  const { deletionTimestamp, deletionGracePeriodSeconds, resourceVersion, managedFields, ...kept } = given;
  const { [podAnnotations.configMirror]: mirror, ...annotations } = given.annotations ?? {};
  return {
    ...kept,
    ...identity,
    annotations: {
      ...annotations,
      [podAnnotations.configHash]: identity.uid,
      [podAnnotations.configSource]: source,
      [podAnnotations.configSeen]: new Date(seenAt).toISOString(),
    },
  };
}

function withToleration(tolerations: readonly Toleration[]): Toleration[] {
  const present = tolerations.some(
    ({ key, operator, effect, tolerationSeconds }) =>
      !key && operator === 'Exists' && (!effect || effect === 'NoExecute') && tolerationSeconds === undefined,
  );
  return present ? [...tolerations] : [...tolerations, tolerateEviction];
}

function priorityOf({ priority, priorityClassName }: PodSpec): { priority?: number } {
  if (priority !== undefined) return { priority };
  const known = Object.hasOwn(knownPriorities, priorityClassName ?? '');
  return known ? { priority: knownPriorities[priorityClassName ?? '']! } : {};
}
