/**
 * The images that the demo, the tests and the bench use, made on the machine itself: no registry is
 * asked. They hold a static busybox and the pause program; their digests depend on those alone.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { CommandFailedError, findProgram, runCommand } from './command.ts';
import { listImageReferences } from './cri-calls.ts';
import { type ImageDefinition, ociArchive } from './oci-archive.ts';
import { pauseProgram } from './pause-program.ts';
import { staticBusybox } from './static-busybox.ts';
import type { TarEntry } from './tar-archive.ts';

/** References of the images, for manifests and tests. */
export const demoImages = {
  /** The sandbox image: holds namespaces, reaps, exits on TERM. */
  pause: 'localhost/kubelet-ts/pause:1',
  /** busybox with every applet; waits for TERM when no command is given. */
  busybox: 'localhost/kubelet-ts/busybox:1',
  /** An HTTP server on `$PORT` (8080) serving `/www`; exits on TERM. */
  web: 'localhost/kubelet-ts/web:1',
  /** busybox whose `USER` is 1000:1000. */
  numericUser: 'localhost/kubelet-ts/numeric-user:1',
  /** busybox whose `USER` is the name `app` (1000 in its /etc/passwd). */
  namedUser: 'localhost/kubelet-ts/named-user:1',
} as const;

const page = `<!doctype html>
<meta charset="utf-8">
<title>kubelet-ts</title>
<h1>Hello from a pod</h1>
<p>This page is served by busybox httpd in a container that kubelet-ts started from a manifest.</p>
`;

/** httpd as process 1 would ignore TERM, so a shell that does not stands in front of it. */
const serve = `#!/bin/sh
trap 'kill $server; exit 0' TERM INT
httpd -f -p "\${PORT:-8080}" -h /www &
server=$!
wait $server
`;

function baseLayer(busybox: Buffer, applets: readonly string[], pause: Buffer): TarEntry[] {
  return [
    { type: 'directory', path: 'bin', mode: 0o755 },
    { type: 'file', path: 'bin/busybox', mode: 0o755, content: busybox },
    { type: 'file', path: 'bin/pause', mode: 0o755, content: pause },
    ...applets.map((name): TarEntry => ({ type: 'symlink', path: `bin/${name}`, target: 'busybox' })),
    { type: 'directory', path: 'etc', mode: 0o755 },
    {
      type: 'file',
      path: 'etc/passwd',
      mode: 0o644,
      content: 'root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000:app:/home/app:/bin/sh\n',
    },
    { type: 'file', path: 'etc/group', mode: 0o644, content: 'root:x:0:\nextra:x:2000:app\napp:x:1000:\n' },
    { type: 'directory', path: 'home', mode: 0o755 },
    { type: 'directory', path: 'home/app', mode: 0o755, owner: 1000 },
    { type: 'directory', path: 'root', mode: 0o700 },
    { type: 'directory', path: 'tmp', mode: 0o1777 },
  ];
}

/** The definitions, from the bytes of a static busybox and the names of its applets. */
export function demoImageDefinitions(
  busybox: Buffer,
  applets: readonly string[],
  architecture: 'x64' | 'arm64',
): ImageDefinition[] {
  const pause = pauseProgram(architecture);
  const base = baseLayer(busybox, applets, pause);
  return [
    {
      reference: demoImages.pause,
      layers: [[{ type: 'file', path: 'pause', mode: 0o755, content: pause }]],
      entrypoint: ['/pause'],
    },
    { reference: demoImages.busybox, layers: [base], command: ['/bin/pause'] },
    {
      reference: demoImages.web,
      layers: [
        base,
        [
          { type: 'file', path: 'bin/serve', mode: 0o755, content: serve },
          { type: 'directory', path: 'www', mode: 0o755 },
          { type: 'file', path: 'www/index.html', mode: 0o644, content: page },
        ],
      ],
      command: ['/bin/serve'],
      workingDirectory: '/www',
    },
    { reference: demoImages.numericUser, layers: [base], command: ['/bin/pause'], user: '1000:1000' },
    { reference: demoImages.namedUser, layers: [base], command: ['/bin/pause'], user: 'app' },
  ];
}

/** The archive of all demo images for this machine. */
export async function demoImageArchive(): Promise<Buffer> {
  const architecture = process.arch;
  if (architecture !== 'x64' && architecture !== 'arm64') {
    throw new Error(`demo images: no pause program for ${architecture}; x64 and arm64 have one`);
  }
  const busybox = await staticBusybox();
  const applets = (await runCommand(busybox, ['--list']))
    .split('\n')
    .filter((name) => name !== '' && name !== 'busybox');
  const definitions = demoImageDefinitions(readFileSync(busybox), applets, architecture);
  return ociArchive(definitions, architecture === 'x64' ? 'amd64' : 'arm64');
}

export interface ImageImport {
  /** `unix://` endpoint of the containerd. */
  endpoint: string;
  /** A writable directory; the archive is there only while it is imported. */
  directory: string;
  snapshotter: string;
  /** Directories searched for `ctr` before PATH. */
  binaries?: readonly string[];
}

/**
 * Makes the demo images known to a containerd; returns when CRI lists them and every byte of them is there.
 * Cheap when they are. An image that an import which was cut short has left in part is imported again.
 */
export async function importDemoImages(target: ImageImport): Promise<void> {
  const wanted = Object.values(demoImages);
  const missing = async (): Promise<string[]> => {
    const present = await listImageReferences(target.endpoint);
    return wanted.filter((reference) => !present.has(reference));
  };
  const ctr = findProgram('ctr', target.binaries);
  if (ctr === undefined)
    throw new Error('demo images: the program ctr (it comes with containerd) is missing');
  const address = target.endpoint.replace(/^unix:\/\//, '');
  const images = ['--address', address, '--namespace', 'k8s.io', 'images'];
  const snapshotter = ['--snapshotter', target.snapshotter];
  /** Those of which a blob is missing, or that are not unpacked. */
  const incomplete = async (): Promise<string[]> => {
    const filters = wanted.map((reference) => `name==${reference}`);
    const check = runCommand(ctr, [...images, 'check', '--quiet', ...snapshotter, ...filters]);
    // It names the complete ones, and fails as well when there are others.
    const lines = await check.catch((error: unknown) => {
      if (error instanceof CommandFailedError) return error.output;
      throw error;
    });
    return wanted.filter((reference) => !lines.split('\n').includes(reference));
  };
  if ((await missing()).length === 0 && (await incomplete()).length === 0) return;

  // From containerd 2 on, ctr hands the work to the transfer service unless told to do it itself.
  const local = (await runCommand(ctr, ['images', 'import', '--help'])).includes('--local')
    ? ['--local']
    : [];
  const file = join(target.directory, `images-${process.pid}.tar`);
  try {
    writeFileSync(file, await demoImageArchive());
    await runCommand(ctr, [...images, 'import', ...local, ...snapshotter, file], { timeout: 120_000 });
  } finally {
    rmSync(file, { force: true });
  }
  const broken = await incomplete();
  if (broken.length > 0) throw new Error(`demo images: imported, but ${broken.join(', ')} is not complete`);
  // The CRI plugin learns of new images by an event of its own.
  const deadline = Date.now() + 10_000;
  for (;;) {
    const left = await missing();
    if (left.length === 0) return;
    if (Date.now() > deadline)
      throw new Error(`demo images: imported, but CRI does not list ${left.join(', ')}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const file = process.argv[2];
  if (file === undefined) {
    console.error('usage: node scripts/machine/demo-images.ts ARCHIVE   (writes the OCI archive there)');
    process.exitCode = 2;
  } else {
    writeFileSync(file, await demoImageArchive());
  }
}
