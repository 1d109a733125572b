/**
 * The hashes the kubelet shows to the outside: FNV-1a, the container hash annotation, and a hash of a JSON
 * value that does not depend on the order of its keys. None of them is for security.
 */
import { Buffer } from 'node:buffer';
import { createHash } from 'node:crypto';

/** FNV-1a, 32 bits, as an unsigned number. */
export function fnv1a32(data: string | Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of bytesOf(data)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

/** FNV-1a, 128 bits, as 32 hexadecimal digits. */
export function fnv1a128Hex(data: string | Uint8Array): string {
  const prime = (1n << 88n) + 0x13bn;
  let hash = 0x6c62272e07bb014262b821756295c58dn;
  for (const byte of bytesOf(data)) hash = BigInt.asUintN(128, (hash ^ BigInt(byte)) * prime);
  return hash.toString(16).padStart(32, '0');
}

/**
 * The value of `io.kubernetes.container.hash`: FNV-1a 32 of the container's name and image, in hexadecimal
 * without leading zeros. It is bit for bit what the Go kubelet writes, so either adopts the other's
 * containers: Go hashes its own rendering of a byte slice that holds the JSON of the two fields.
 */
export function containerHash(container: { name: string; image?: string }): string {
  const fields = container.image
    ? { image: container.image, name: container.name }
    : { name: container.name };
  const bytes = Buffer.from(goJson(fields));
  return fnv1a32(`([]uint8)[${bytes.join(' ')}]`).toString(16);
}

/** JSON as Go writes it: characters that matter to HTML and JavaScript are escaped. */
function goJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/**
 * SHA-256 of a JSON value in hexadecimal. Equal values have equal hashes whatever the order of their keys;
 * absent (`undefined`) members count as not there.
 */
export function contentHash(value: unknown): string {
  return createHash('sha256').update(stableJson(value)).digest('hex');
}

/** JSON with the keys of every object sorted. */
export function stableJson(value: unknown): string {
  return (
    JSON.stringify(value, (_key, member: unknown) => {
      if (member === null || typeof member !== 'object' || Array.isArray(member)) return member;
      return Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)));
    }) ?? 'null'
  );
}

function bytesOf(data: string | Uint8Array): Uint8Array {
  return typeof data === 'string' ? Buffer.from(data) : data;
}
