/**
 * Finds or fetches a statically linked busybox. The package is unpacked beside the checkout rather than
 * installed: it would replace a dynamic busybox that the machine's boot may rely on.
 */
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import { runCommand } from './command.ts';
import { updatePackageLists } from './install-packages.ts';

const toolDirectory = join(import.meta.dirname, '../../.cache/tools');
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
  const work = join(toolDirectory, `download-${process.pid}`);
  mkdirSync(work, { recursive: true });
  removeAbandoned();
  try {
    // Without this the archive is fetched as the user _apt, who may not be allowed to write here.
    const download = ['-q', '-o', 'APT::Sandbox::User=root', 'download', 'busybox-static'];
    await runCommand('apt-get', download, { cwd: work, timeout: 300_000 }).catch(async () => {
      await updatePackageLists();
      await runCommand('apt-get', download, { cwd: work, timeout: 300_000 });
    });
    const archive = readdirSync(work).find((name) => name.endsWith('.deb'));
    if (archive === undefined) throw new Error(`busybox-static: apt-get download left no archive in ${work}`);
    await runCommand('dpkg-deb', ['--extract', join(work, archive), work]);
    const file = ['bin/busybox', 'usr/bin/busybox']
      .map((name) => join(work, name))
      .find((name) => existsSync(name));
    if (file === undefined || !isStaticProgram(file)) {
      throw new Error(`busybox-static: ${archive} holds no static busybox`);
    }
    renameSync(file, unpacked);
    return unpacked;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Removes what downloads that were killed have left. */
function removeAbandoned(): void {
  for (const name of readdirSync(toolDirectory)) {
    const pid = /^download-(\d+)$/.exec(name)?.[1];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) {
      rmSync(join(toolDirectory, name), { recursive: true, force: true });
    }
  }
}
