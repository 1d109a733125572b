/**
 * What changes rarely: the emulator, the kernel, and a root disk with containerd, the OCI runtimes, CNI plugins and
 * Node.js. Made from the distribution's packages inside the cache folder; nothing is installed on the machine.
 * Remove the cache folder to take up newer packages.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { initramfs, kernelVersionIn } from './initramfs.ts';
import { PackageCache, UnpackedTools, unpack } from './packages.ts';

/** What boots: kernel, initial file system and root disk, with the tools to run them. */
export interface BaseImage {
  tools: UnpackedTools;
  kernel: string;
  initramfs: string;
  /** Raw ext4 image; never written to by a run. */
  disk: string;
  /** Folder for what a run writes and throws away. */
  scratch: string;
}

const toolPackages = ['qemu-system-x86', 'seabios', 'e2fsprogs', 'kmod', 'xz-utils'];

const guestPackages = [
  'containerd',
  'crun',
  'runc',
  'containernetworking-plugins',
  'iptables',
  'iproute2',
  'busybox-static',
  'dash',
  'bash',
  'util-linux',
  'mount',
  'procps',
  'kmod',
  'libstdc++6',
];

/** Debian's and Ubuntu's names for the kernel made for virtual machines. */
const kernelPackages = ['linux-image-cloud-amd64', 'linux-image-virtual'];

/** Parts of packages that no test reads. */
const leftOut = ['usr/share/doc', 'usr/share/man', 'usr/share/locale', 'usr/share/info', 'boot'];

/** Sparse size of the root disk: what tests may write (images, container layers, logs). */
const diskSize = '8G';

/**
 * Brings the base image up to date: downloads and builds on the first call and after a change of its recipe, and is
 * instant otherwise.
 * @param cache folder to keep everything in
 * @param node the Node.js executable to put on the disk
 */
export function prepareBaseImage(cache: string, node: string): BaseImage {
  if (process.arch !== 'x64') throw new Error(`The virtual machine is x64, this machine is ${process.arch}.`);
  const folder = join(cache, 'base');
  const tools = new UnpackedTools(join(folder, 'tools'));
  const image: BaseImage = {
    tools,
    kernel: join(folder, 'vmlinuz'),
    initramfs: join(folder, 'initramfs.cpio'),
    disk: join(folder, 'root.ext4'),
    scratch: folder,
  };
  const key = recipeKey(node);
  if (readIfThere(join(folder, 'key')) === key) return image;

  console.error('vm: building the base image (once; downloads about 130 MB of packages)');
  rmSync(folder, { recursive: true, force: true });
  const packages = new PackageCache(join(cache, 'packages'));
  unpack(packages.downloadWithDependencies('tools', toolPackages), join(folder, 'tools'));
  const root = join(folder, 'root');
  unpack(packages.downloadWithDependencies('guest', guestPackages), root);
  unpack(packages.downloadMatching('kernel', kernelPackages, /^linux-(image|modules)-\d/), root);
  const version = kernelVersionIn(root);
  renameSync(join(root, `boot/vmlinuz-${version}`), image.kernel);
  replaceByLink('../bin/kmod', tools.path('usr/sbin/depmod')); // the package's link is absolute
  tools.run('usr/sbin/depmod', ['-b', root, version]);
  completeRoot(root, node);
  writeFileSync(image.initramfs, initramfs(root, version, tools));
  makeDisk({ tools, disk: image.disk, content: root, size: diskSize });
  rmSync(root, { recursive: true });
  rmSync(join(cache, 'packages'), { recursive: true });
  writeFileSync(join(folder, 'key'), key);
  return image;
}

/** Makes a sparse ext4 image that holds a copy of `content`. Without a journal: every run starts from a fresh one. */
export function makeDisk(options: {
  tools: UnpackedTools;
  disk: string;
  content: string;
  size: string;
}): void {
  const { tools, disk, content, size } = options;
  rmSync(disk, { force: true });
  const args = ['-q', '-F', '-t', 'ext4', '-O', '^has_journal', '-m', '0', '-E', 'root_owner=0:0'];
  tools.run('usr/sbin/mke2fs', [...args, '-d', content, disk, size]);
}

/** The content of a file, or undefined when it does not exist. */
export function readIfThere(path: string): string | undefined {
  return statSync(path, { throwIfNoEntry: false }) && readFileSync(path, 'utf8');
}

/** Does what the packages' own scripts would have done, and adds Node.js. */
function completeRoot(root: string, node: string): void {
  for (const folder of leftOut) rmSync(join(root, folder), { recursive: true, force: true });
  for (const folder of ['proc', 'sys', 'dev', 'run', 'tmp', 'root', 'usr/local/bin']) {
    mkdirSync(join(root, folder), { recursive: true });
  }
  linkApplets(root);
  // busybox's own shell would prefer its applets to the programs of packages.
  replaceByLink('dash', join(root, 'usr/bin/sh'));
  // Found before Debian's runc by its place in PATH: crun starts containers three times faster under emulation.
  replaceByLink('/usr/bin/crun', join(root, 'usr/local/bin/runc'));
  for (const name of ['iptables', 'ip6tables']) {
    for (const suffix of ['', '-save', '-restore']) {
      replaceByLink('xtables-nft-multi', join(root, 'usr/sbin', name + suffix));
    }
  }
  cpSync(node, join(root, 'usr/local/bin/node'));
  const configuration: Record<string, string> = {
    'etc/hostname': 'kubelet-vm\n',
    'etc/hosts': '127.0.0.1 localhost\n::1 localhost\n10.0.2.15 kubelet-vm\n',
    'etc/resolv.conf': 'nameserver 10.0.2.3\n',
    'etc/passwd': 'root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n',
    'etc/group': 'root:x:0:\ntty:x:5:\nnogroup:x:65534:\n',
    'etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
    'etc/machine-id': '0123456789abcdef0123456789abcdef\n',
  };
  for (const [path, content] of Object.entries(configuration)) writeFileSync(join(root, path), content);
}

/** Lets busybox stand in for every command that no package brought. */
function linkApplets(root: string): void {
  const busybox = execFileSync(join(root, 'usr/bin/busybox'), ['--list'], { encoding: 'utf8' });
  for (const applet of busybox.split('\n').filter((name) => name !== '')) {
    const there = globSync(`usr/{bin,sbin}/${applet}`, { cwd: root }).length > 0;
    if (!there) symlinkSync('/usr/bin/busybox', join(root, 'usr/bin', applet));
  }
}

function replaceByLink(target: string, path: string): void {
  rmSync(path, { force: true });
  symlinkSync(target, path);
}

/** Changes whenever the base image would come out differently from the same package archive. */
function recipeKey(node: string): string {
  const hash = createHash('sha256');
  for (const name of ['base-image.ts', 'cpio-archive.ts', 'initramfs.ts', 'packages.ts']) {
    hash.update(readFileSync(join(import.meta.dirname, name)));
  }
  const { size, mtimeMs } = statSync(node);
  return hash.update(`${size} ${mtimeMs}`).digest('hex');
}
