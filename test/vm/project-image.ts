/**
 * What changes often: a disk with the project's own files and the packages it needs at run time. Development tools
 * stay behind, so the copy is small and quick; the product's bundle (`dist/`) comes along when it has been built.
 * TypeScript sources lose their types on the way (every line and column stays in place): doing that inside the
 * machine takes each process of an emulated one seconds.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, relative } from 'node:path';
import { type BaseImage, makeDisk, readIfThere } from './base-image.ts';

/** Top-level entries of a checkout that tests inside the machine do not need. */
const leftBehind = new Set(['.git', '.cache', 'node_modules', 'coverage']);

/** Packages outside the run-time dependencies that tests load: the bundle carries protobuf, unbundled sources import it. */
const testPackages = ['@bufbuild/protobuf', 'fast-check'];

/** A program of its own, since Node.js warns that the function it uses is new. */
const stripTypes = join(import.meta.dirname, 'strip-types.ts');

/** Node.js is on the base disk; a checkout has links to it or copies of it at the places below. */
const nodeInside = '/usr/local/bin/node';

/** Sparse size of the project disk. */
const diskSize = '2G';

/**
 * Makes the disk of the project in `project`, or takes the one of the last call when no file has changed.
 * @returns path of the raw ext4 image
 */
export function prepareProjectImage(cache: string, project: string, base: BaseImage): string {
  const folder = join(cache, 'project');
  const disk = join(folder, 'project.ext4');
  const entries = readdirSync(project).filter((name) => !leftBehind.has(name));
  const packages = runtimePackages(project);
  const key = contentKey([...entries, ...packages].map((path) => join(project, path)));
  if (readIfThere(join(folder, 'key')) === key) return disk;

  rmSync(folder, { recursive: true, force: true });
  const copy = join(folder, 'copy');
  mkdirSync(join(copy, 'node_modules/.bin'), { recursive: true });
  for (const path of [...entries, ...packages]) {
    cpSync(join(project, path), join(copy, path), {
      recursive: true,
      verbatimSymlinks: true,
      filter: (source) => source !== join(project, 'dist/node'),
    });
  }
  execFileSync(process.execPath, ['--disable-warning=ExperimentalWarning', stripTypes, copy]);
  for (const path of ['node_modules/.bin/node', 'dist/node']) {
    if (existsSync(join(project, path))) symlinkSync(nodeInside, join(copy, path));
  }
  makeDisk({ tools: base.tools, disk, content: copy, size: diskSize });
  rmSync(copy, { recursive: true });
  writeFileSync(join(folder, 'key'), key);
  return disk;
}

interface PackageManifest {
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

/** Folders of the packages used at run time and by tests, relative to the project; Node.js itself is on the base disk. */
function runtimePackages(project: string): string[] {
  const found = new Set<string>();
  const visit = (name: string) => {
    const folder = `node_modules/${name}`;
    const missing = !existsSync(join(project, folder)); // an optional one for another platform
    if (missing || found.has(folder) || name.startsWith('node-linux-') || name.startsWith('@types/')) return;
    found.add(folder);
    for (const dependency of dependenciesOf(join(project, folder))) visit(dependency);
  };
  for (const name of [...dependenciesOf(project), ...testPackages]) visit(name);
  return [...found].sort();
}

function dependenciesOf(folder: string): string[] {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as PackageManifest;
  return Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies });
}

/** A key over name, size and time of change of every file below `paths`, in order. */
function contentKey(paths: readonly string[]): string {
  const hash = createHash('sha256')
    .update(readFileSync(import.meta.filename))
    .update(readFileSync(stripTypes));
  const visit = (path: string, root: string) => {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return; // removed while we look
    if (!stat.isDirectory()) hash.update(`${root}/${relative(root, path)} ${stat.size} ${stat.mtimeMs}\n`);
    else for (const name of readdirSync(path).sort()) visit(join(path, name), root);
  };
  for (const path of paths) visit(path, path);
  return hash.digest('hex');
}
