/**
 * Writes tar archives (ustar) whose bytes depend on their content alone: no clock, no user names, no
 * file system order. Image digests stay the same on every machine because of it.
 */

export type TarEntry =
  | { type: 'file'; path: string; mode: number; content: Buffer | string }
  | { type: 'directory'; path: string; mode: number; owner?: number }
  | { type: 'symlink'; path: string; target: string };

const block = 512;
const typeFlags = { file: '0', symlink: '2', directory: '5' } as const;

function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, '0')}\0`;
}

function header(entry: TarEntry, size: number): Buffer {
  const name = entry.type === 'directory' ? `${entry.path}/` : entry.path;
  if (Buffer.byteLength(name) > 100) throw new RangeError(`tar entry ${name}: longer than 100 bytes`);
  const owner = entry.type === 'directory' ? (entry.owner ?? 0) : 0;
  const head = Buffer.alloc(block);
  head.write(name, 0);
  head.write(octal(entry.type === 'symlink' ? 0o777 : entry.mode, 8), 100);
  head.write(octal(owner, 8), 108);
  head.write(octal(owner, 8), 116);
  head.write(octal(size, 12), 124);
  head.write(octal(0, 12), 136);
  head.write('        ', 148); // the sum counts its own field as blanks
  head.write(typeFlags[entry.type], 156);
  if (entry.type === 'symlink') head.write(entry.target, 157);
  head.write('ustar\x0000', 257, 'latin1');
  const sum = head.reduce((total, byte) => total + byte, 0);
  head.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return head;
}

/** The archive of the entries, in their order; a parent directory must come before what is in it. */
export function tarArchive(entries: readonly TarEntry[]): Buffer {
  const parts: Buffer[] = [];
  for (const entry of entries) {
    const content = entry.type === 'file' ? Buffer.from(entry.content) : Buffer.alloc(0);
    parts.push(header(entry, content.length), content);
    if (content.length % block !== 0) parts.push(Buffer.alloc(block - (content.length % block)));
  }
  parts.push(Buffer.alloc(2 * block));
  return Buffer.concat(parts);
}
