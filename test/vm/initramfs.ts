/**
 * The first file system of the virtual machine: busybox, the drivers that reach the root disk, and a script that
 * mounts it. Every run appends a second archive, `vm/`, with what to do then.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { type CpioEntry, cpioArchive } from './cpio-archive.ts';
import type { UnpackedTools } from './packages.ts';

/** What the kernel needs to see its disks; kernels that have one of them built in simply lack the file. */
const bootModules = ['virtio_pci', 'virtio_blk'];

const init = `#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
while read -r module; do /bin/busybox insmod "/modules/$module"; done < /modules/order
# Disks appear a moment after their driver.
until [ -b /dev/vdb ]; do /bin/busybox usleep 20000; done
/bin/busybox mount -t ext4 -o noatime /dev/vda /root || /bin/busybox poweroff -f
/bin/busybox mount -t tmpfs -o mode=755 run /root/run
/bin/busybox cp -r /vm /root/run/vm
/bin/busybox mount -o move /dev /root/dev
exec /bin/busybox switch_root /root /run/vm/init
`;

/** Builds the archive from an unpacked guest root that has its kernel modules and `modules.dep`. */
export function initramfs(guestRoot: string, kernelVersion: string, tools: UnpackedTools): Buffer {
  const modulesFolder = join(guestRoot, 'usr/lib/modules', kernelVersion);
  const modules = loadOrder(readFileSync(join(modulesFolder, 'modules.dep'), 'utf8'), bootModules).map(
    (path, position) => ({
      name: `${position}.ko`,
      content: moduleContent(join(modulesFolder, path), tools),
    }),
  );
  const order = modules.map(({ name }) => `${name}\n`).join('');
  const files: CpioEntry[] = [
    ...['bin', 'dev', 'modules', 'root'].map((path) => ({ path })),
    { path: 'bin/busybox', content: readFileSync(join(guestRoot, 'usr/bin/busybox')) },
    { path: 'init', content: Buffer.from(init) },
    { path: 'modules/order', content: Buffer.from(order) },
    ...modules.map(({ name, content }) => ({ path: `modules/${name}`, content })),
  ];
  return cpioArchive(files);
}

/** Version of the only kernel whose modules lie in an unpacked guest root. */
export function kernelVersionIn(guestRoot: string): string {
  const [version] = readdirSync(join(guestRoot, 'usr/lib/modules'));
  if (version === undefined) throw new Error(`No kernel modules in ${guestRoot}.`);
  return version;
}

/**
 * Paths of the wanted modules and all they depend on, each after its dependencies.
 * @param dependencies content of `modules.dep`: lines `path: path of a dependency …`, nearest dependency first
 */
export function loadOrder(dependencies: string, wanted: readonly string[]): string[] {
  const lines = dependencies.split('\n').map((line) => line.split(/:? +|:$/).filter((path) => path !== ''));
  const chains = wanted.map((name) => lines.find(([path]) => moduleName(path) === name) ?? []);
  return [...new Set(chains.flatMap((chain) => chain.reverse()))];
}

function moduleName(path = ''): string {
  return path.slice(path.lastIndexOf('/') + 1).replace(/\.ko(\..*)?$/, '');
}

/** Distributions differ in how they compress modules; the initial system's insmod wants them plain. */
function moduleContent(path: string, tools: UnpackedTools): Buffer {
  if (path.endsWith('.xz')) return tools.run('usr/bin/xz', ['--decompress', '--stdout', path]);
  const content = readFileSync(path);
  return path.endsWith('.zst') ? zstdDecompressSync(content) : content;
}
