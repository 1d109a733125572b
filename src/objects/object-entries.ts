/**
 * The content of config maps and secrets, decoded once for each version of an object, however many pods
 * share it.
 */
import type { ConfigMap, Secret } from './object-types.ts';

/** Key to content. */
export type Entries = ReadonlyMap<string, Uint8Array>;

const decoded = new WeakMap<object, Entries>();

/** `data` and `binaryData`. */
export function configMapEntries(configMap: ConfigMap): Entries {
  return once(configMap, () => [
    ...Object.entries(configMap.data ?? {}).map(([key, text]) => [key, Buffer.from(text)] as const),
    ...fromBase64(configMap.binaryData),
  ]);
}

export function secretEntries(secret: Secret): Entries {
  return once(secret, () => fromBase64(secret.data));
}

/** The texts a secret holds, as environments take them. */
export function secretTexts(secret: Secret): Record<string, string> {
  const texts = [...secretEntries(secret)].map(
    ([key, bytes]) => [key, Buffer.from(bytes).toString('utf8')] as const,
  );
  return Object.fromEntries(texts);
}

function once(object: object, decode: () => readonly (readonly [string, Uint8Array])[]): Entries {
  const known = decoded.get(object) ?? new Map(decode());
  decoded.set(object, known);
  return known;
}

function fromBase64(data: Readonly<Record<string, string>> = {}): [string, Uint8Array][] {
  return Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64')]);
}
