/**
 * Distribution packages without installing them: apt resolves and downloads (with its signatures checked), tar
 * unpacks into a folder of ours. The dependencies are resolved as if nothing were installed, so the result is
 * complete down to libc and does not depend on the machine; its package database, boot loader and services are
 * never touched.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** apt or an unpacked tool failed; the message carries what it printed. */
export class PackageError extends Error {
  override readonly name = 'PackageError';
}

/** Top-level folders that are links into /usr on a merged system; older packages still ship files in them. */
const mergedFolders = ['bin', 'sbin', 'lib', 'lib64'];

/** A cache of downloaded packages in `folder`, one group of packages at a time. */
export class PackageCache {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Downloads `packages` with everything they depend on into the group's own folder.
   * @returns paths of the .deb files
   */
  downloadWithDependencies(group: string, packages: readonly string[]): string[] {
    const archives = this.#emptyGroup(group);
    this.#aptGet(['--download-only', 'install', ...packages], archives);
    return debsIn(archives);
  }

  /**
   * Downloads those of the dependencies of the first package that exists in `candidates` whose name matches
   * `wanted`, e.g. the kernel behind a distribution's kernel meta package, without the boot tools it asks for.
   * @returns paths of the .deb files
   */
  downloadMatching(group: string, candidates: readonly string[], wanted: RegExp): string[] {
    const archives = this.#emptyGroup(group);
    const meta = candidates.find((name) => succeeds('apt-cache', ['show', name]));
    if (meta === undefined) {
      throw new PackageError(
        `None of the packages ${candidates.join(', ')} is known to apt. Check /etc/apt/sources.list*.`,
      );
    }
    const uris = this.#aptGet(['--print-uris', 'install', meta], archives);
    // A line reads: 'http://…' name_version_architecture.deb size checksum
    const names = uris.split('\n').map((line) => line.split(' ')[1]?.split('_')[0] ?? '');
    const chosen = names.filter((name) => wanted.test(name));
    if (chosen.length === 0) throw new PackageError(`${meta} depends on no package named like ${wanted}.`);
    run('apt-get', ['-qq', '-o', 'APT::Sandbox::User=root', 'download', ...chosen], { cwd: archives });
    return debsIn(archives);
  }

  #emptyGroup(group: string): string {
    const archives = join(this.#folder, group);
    rmSync(archives, { recursive: true, force: true });
    mkdirSync(join(archives, 'partial'), { recursive: true });
    return archives;
  }

  #aptGet(args: readonly string[], archives: string): string {
    const noneInstalled = join(this.#folder, 'none-installed');
    writeFileSync(noneInstalled, '');
    const options = [
      `Dir::State::status=${noneInstalled}`,
      `Dir::Cache::archives=${archives}`,
      'APT::Sandbox::User=root',
      'APT::Install-Recommends=false',
      'Debug::NoLocking=true',
    ].flatMap((option) => ['-o', option]);
    const command = ['-qq', '--yes', ...options, ...args];
    const first = spawnSync('apt-get', command, { encoding: 'utf8', maxBuffer: 2 ** 26 });
    if (first.status === 0) return first.stdout;
    // A fresh machine has no package lists yet, an old one has lists of packages that are gone.
    run('apt-get', ['-qq', 'update']);
    return run('apt-get', command);
  }
}

/** Unpacks packages into `root`, laid out with /bin, /sbin and /lib merged into /usr. Runs no package scripts. */
export function unpack(debs: readonly string[], root: string): void {
  for (const folder of mergedFolders) {
    mkdirSync(join(root, 'usr', folder), { recursive: true });
    if (!existsSync(join(root, folder))) symlinkSync(`usr/${folder}`, join(root, folder));
  }
  for (const deb of debs) {
    // Not `dpkg -x`, which would replace the links made above by folders.
    // Not by a pipe, in which the failure of its first half goes unnoticed.
    const script =
      'dpkg-deb --fsys-tarfile "$1" >"$3"; tar --extract --keep-directory-symlink --directory "$2" --file "$3"';
    const archive = `${root}.tar`;
    try {
      run('sh', ['-ec', script, 'unpack', deb, root, archive]);
    } finally {
      rmSync(archive, { force: true });
    }
  }
}

/** Executables unpacked in `root`, run with the libraries beside them instead of the machine's. */
export class UnpackedTools {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  /** The command line that runs `tool` (a path under the root, such as `usr/bin/xz`). */
  command(tool: string, args: readonly string[]): { file: string; args: string[] } {
    const libraries = ['usr/lib/x86_64-linux-gnu', 'usr/lib'].map((folder) => this.path(folder));
    return {
      file: this.path('usr/lib64/ld-linux-x86-64.so.2'),
      args: ['--library-path', libraries.join(':'), this.path(tool), ...args],
    };
  }

  /** Where a file of the tools lies. */
  path(relative: string): string {
    return join(this.#root, relative);
  }

  /** Runs `tool` to its end. @returns what it wrote on stdout */
  run(tool: string, args: readonly string[]): Buffer {
    const command = this.command(tool, args);
    return execFileSync(command.file, command.args, {
      stdio: ['ignore', 'pipe', 'inherit'],
      maxBuffer: 2 ** 28,
    });
  }
}

/** Runs a program of the machine. @returns its stdout @throws PackageError with its stderr when it fails */
function run(file: string, args: readonly string[], options: { cwd?: string } = {}): string {
  const result = spawnSync(file, args, { ...options, encoding: 'utf8', maxBuffer: 2 ** 26 });
  if (result.status === 0) return result.stdout;
  const why = result.error?.message ?? result.stderr.trim();
  throw new PackageError(`${file} ${args.join(' ')} failed: ${why}`, { cause: result.error });
}

function succeeds(file: string, args: readonly string[]): boolean {
  return spawnSync(file, args, { stdio: 'ignore' }).status === 0;
}

function debsIn(folder: string): string[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.deb'));
  return names.sort().map((name) => join(folder, name));
}
