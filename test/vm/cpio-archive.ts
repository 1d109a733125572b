/** A file or folder of a cpio archive. Folders have no content. */
export interface CpioEntry {
  /** Path without a leading slash, e.g. `bin/busybox`. */
  path: string;
  content?: Uint8Array;
}

/**
 * Packs entries in the "newc" cpio format, the one the kernel unpacks as its initial file system. Parents must
 * come before their children. All files are executable and root's. The kernel accepts several archives in a row.
 */
export function cpioArchive(entries: readonly CpioEntry[]): Buffer {
  const records = entries.map((entry, index) => cpioRecord(entry, index + 1));
  return Buffer.concat([...records, cpioRecord({ path: 'TRAILER!!!', content: new Uint8Array() }, 0)]);
}

function cpioRecord({ path, content }: CpioEntry, inode: number): Buffer {
  const name = Buffer.from(`${path}\0`);
  const mode = content === undefined ? 0o040755 : 0o100755;
  const size = content?.length ?? 0;
  // In order: inode, mode, uid, gid, links, mtime, size, device (2), special device (2), name size, checksum.
  const fields = [inode, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name.length, 0];
  const header = `070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}`;
  return Buffer.concat([
    padded(Buffer.concat([Buffer.from(header), name])),
    padded(content ?? Buffer.alloc(0)),
  ]);
}

/** Header and content each fill whole groups of four bytes. */
function padded(bytes: Uint8Array): Buffer {
  return Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)]);
}
