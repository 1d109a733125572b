/**
 * Which AppArmor profile a container asks for: a field of its own, an annotation of the pod, or a field of
 * the pod.
 */
import type { Container, Pod } from './types.ts';

/** `appArmorProfile` of a security context. A `type` that is none of Kubernetes' is an annotation's fault. */
export interface AppArmorProfile {
  readonly type: string;
  readonly localhostProfile?: string | undefined;
}

const annotationPrefix = 'container.apparmor.security.beta.kubernetes.io/';
const localhostPrefix = 'localhost/';

/**
 * The container's field wins over the annotation for it, that over the pod's field: a static pod from the
 * time before the fields keeps its meaning. `undefined` when nobody asks.
 */
export function appArmorProfileOf(
  { metadata, spec }: Pod,
  { name, securityContext }: Pick<Container, 'name' | 'securityContext'>,
): AppArmorProfile | undefined {
  return (
    securityContext?.appArmorProfile ??
    fromAnnotation(metadata.annotations?.[`${annotationPrefix}${name}`]) ??
    spec.securityContext?.appArmorProfile
  );
}

function fromAnnotation(value: string | undefined): AppArmorProfile | undefined {
  if (!value) return undefined;
  if (value === 'runtime/default') return { type: 'RuntimeDefault' };
  if (value === 'unconfined') return { type: 'Unconfined' };
  if (!value.startsWith(localhostPrefix)) return { type: value };
  return { type: 'Localhost', localhostProfile: value.slice(localhostPrefix.length) };
}

/** What is wrong with a profile however the node is made; `undefined` for a good one. */
export function appArmorFault({ type, localhostProfile }: AppArmorProfile): string | undefined {
  if (type === 'Localhost') return localhostProfile ? undefined : 'missing localhost apparmor profile name';
  const isKnown = type === 'RuntimeDefault' || type === 'Unconfined';
  return isKnown ? undefined : `invalid AppArmor profile name: ${JSON.stringify(type)}`;
}
