/**
 * Writes the few ASN.1 values (DER) that certificate requests and certificates are made of. It only writes:
 * reading is `node:crypto`'s.
 */
import { isIP } from 'node:net';

const tag = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  nothing: 0x05,
  oid: 0x06,
  utf8: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

/** One value: its tag, its length, its content. */
function value(tagByte: number, content: Uint8Array): Buffer {
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.of(tagByte, length), content]);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Buffer.concat([Buffer.of(tagByte, 0x80 | bytes.length, ...bytes), content]);
}

export const sequence = (...parts: readonly Uint8Array[]): Buffer =>
  value(tag.sequence, Buffer.concat(parts));
export const set = (...parts: readonly Uint8Array[]): Buffer => value(tag.set, Buffer.concat(parts));
export const boolean = (of: boolean): Buffer => value(tag.boolean, Buffer.of(of ? 0xff : 0));
/** NULL. */
export const nothing = (): Buffer => value(tag.nothing, Buffer.alloc(0));
export const octetString = (content: Uint8Array): Buffer => value(tag.octetString, content);
export const utf8String = (text: string): Buffer => value(tag.utf8, Buffer.from(text, 'utf8'));

/** `unused`: bits of the last byte that do not count. */
export const bitString = (content: Uint8Array, unused = 0): Buffer =>
  value(tag.bitString, Buffer.concat([Buffer.of(unused), content]));

/** A number that is not negative, from its bytes, highest first. */
export function integer(bytes: Uint8Array): Buffer {
  let start = 0;
  while (start < bytes.length - 1 && bytes[start] === 0) start++;
  const trimmed = bytes.length === 0 ? Buffer.of(0) : bytes.subarray(start);
  // A first bit that is set would make it negative.
  return value(tag.integer, (trimmed[0]! & 0x80) === 0 ? trimmed : Buffer.concat([Buffer.of(0), trimmed]));
}

/** `1.2.840.10045.4.3.2`. */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second];
  for (const part of rest) {
    const group = [part & 0x7f];
    for (let left = Math.floor(part / 128); left > 0; left = Math.floor(left / 128))
      group.unshift((left & 0x7f) | 0x80);
    bytes.push(...group);
  }
  return value(tag.oid, Buffer.from(bytes));
}

/** Whole seconds; the short form until 2049, as X.509 demands. */
export function time(date: Date): Buffer {
  const digits = date.toISOString().replace(/[-:T]|\.\d+/g, '');
  const year = date.getUTCFullYear();
  return year < 2050 && year >= 1950
    ? value(tag.utcTime, Buffer.from(digits.slice(2), 'ascii'))
    : value(tag.generalizedTime, Buffer.from(digits, 'ascii'));
}

/** A context-specific tag; `constructed` when it holds values rather than bytes. */
export const context = (number: number, constructed: boolean, content: Uint8Array): Buffer =>
  value(0x80 | (constructed ? 0x20 : 0) | number, content);

/** The 4 or 16 bytes of an IP address. Throws on anything else. */
export function ipBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split('.').map(Number));
  if (isIP(address) !== 6 || address.includes('%')) throw new Error(`${address} is not an IP address`);
  // An IPv4 address at the end stands for two groups.
  const text = address.replace(/\d+\.\d+\.\d+\.\d+$/, (dotted: string) => {
    const [a = '', b = '', c = '', d = ''] = dotted.split('.');
    const group = (high: string, low: string) => (Number(high) * 256 + Number(low)).toString(16);
    return `${group(a, b)}:${group(c, d)}`;
  });
  const [head = '', tail] = text.split('::');
  const groups = (part: string) => (part === '' ? [] : part.split(':'));
  const before = groups(head);
  const after = tail === undefined ? [] : groups(tail);
  const missing = Array.from({ length: 8 - before.length - after.length }, () => '0');
  return Buffer.from(
    [...before, ...missing, ...after].flatMap((group) => {
      const number = Number.parseInt(group, 16);
      return [number >> 8, number & 0xff];
    }),
  );
}

/** DER as PEM text. */
export function pem(label: string, der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}
