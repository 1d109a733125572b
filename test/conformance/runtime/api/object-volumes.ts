/** Volumes of config maps and secrets, by themselves and projected, so that one test states all four. */
import type { Volume } from '../../../../src/kubernetes/types.ts';

export const objectKinds = ['configMap', 'projectedConfigMap', 'secret', 'projectedSecret'] as const;
export type ObjectKind = (typeof objectKinds)[number];

export interface ObjectVolumeOptions {
  readonly items?: { key: string; path: string; mode?: number }[];
  readonly defaultMode?: number;
  readonly optional?: boolean;
}

/** The resource of the API that holds the object. */
export const resourceOf = (kind: ObjectKind) => (/secret/i.test(kind) ? 'secrets' : 'configmaps');

/** A volume `name` that shows the object `object`. */
export function objectVolume(
  kind: ObjectKind,
  name: string,
  object: string,
  { defaultMode, ...options }: ObjectVolumeOptions = {},
): Volume {
  const mode = defaultMode === undefined ? {} : { defaultMode };
  switch (kind) {
    case 'configMap':
      return { name, configMap: { name: object, ...options, ...mode } };
    case 'secret':
      return { name, secret: { secretName: object, ...options, ...mode } };
    case 'projectedConfigMap':
      return { name, projected: { sources: [{ configMap: { name: object, ...options } }], ...mode } };
    case 'projectedSecret':
      return { name, projected: { sources: [{ secret: { name: object, ...options } }], ...mode } };
  }
}

/** An object of that kind with `data` in plain text. */
export function objectOf(kind: ObjectKind, name: string, data: Readonly<Record<string, string>>): object {
  return resourceOf(kind) === 'secrets'
    ? { apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData: data }
    : { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data };
}
