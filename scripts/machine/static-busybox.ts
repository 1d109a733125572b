/**
 * Finds or fetches a statically linked busybox. The package is unpacked beside the checkout rather than
 * installed: it would replace a dynamic busybox that the machine's boot may rely on.
 */
import { closeSync, existsSync, openSync, readSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { toolDirectory, unpackPackage } from './unpacked-package.ts';

const ptInterp = 3;

/** True for an ELF file (64 bit) that names no program interpreter, which is what "static" means. */
export function isStaticProgram(file: string): boolean {
  let fd: number;
  try {
    fd = openSync(file, 'r');
  } catch {
    return false;
  }
  try {
    const head = Buffer.alloc(4096);
    const length = readSync(fd, head, 0, head.length, 0);
    if (length < 64 || head.toString('latin1', 0, 4) !== '\x7fELF') return false;
    const offset = Number(head.readBigUInt64LE(32));
    const size = head.readUInt16LE(54);
    const count = head.readUInt16LE(56);
    for (let index = 0; index < count; index++) {
      const at = offset + index * size;
      if (at + 4 > length || head.readUInt32LE(at) === ptInterp) return false;
    }
    return count > 0;
  } finally {
    closeSync(fd);
  }
}

/** Path of a static busybox; the first call may download Debian's or Ubuntu's package `busybox-static`. */
export async function staticBusybox(): Promise<string> {
  const unpacked = join(toolDirectory, 'busybox');
  for (const file of ['/bin/busybox', '/usr/bin/busybox', unpacked]) {
    if (isStaticProgram(file)) return file;
  }
  await unpackPackage('busybox-static', async (directory) => {
    const file = ['bin/busybox', 'usr/bin/busybox']
      .map((name) => join(directory, name))
      .find((name) => existsSync(name));
    if (file === undefined || !isStaticProgram(file)) {
      throw new Error('busybox-static: the package holds no static busybox');
    }
    renameSync(file, unpacked);
  });
  return unpacked;
}
