/**
 * Cgroups by their file system, the same way on v1 (a tree for each controller) and v2 (one tree). A cgroup
 * is named by its absolute path within the hierarchy, such as `/kubepods/burstable`.
 *
 * Every operation is idempotent and touches the named cgroup and those below it only. A controller that the
 * machine lacks is no error: what was asked of it is reported as skipped.
 */
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, sleep } from '../concurrency/clock.ts';
import { type CgroupLayout, detectCgroups } from './cgroup-layout.ts';
import { readMounts } from './mount-table.ts';

/** A value for one file of a cgroup. The part of the name before the first dot is its controller. */
export interface CgroupSetting {
  /** `cpu.shares`, `memory.max`, … */
  readonly file: string;
  readonly value: string;
}

/** Writing a value into a cgroup failed. */
export class CgroupWriteError extends Error {
  override readonly name = 'CgroupWriteError';
  constructor(cgroup: string, setting: CgroupSetting, cause: unknown) {
    super(`Cgroup ${cgroup} did not take ${setting.file}=${setting.value}: ${messageOf(cause)}`, { cause });
  }
}

/** A cgroup could not be removed. `processes` are those still in it. */
export class CgroupRemovalError extends Error {
  override readonly name = 'CgroupRemovalError';
  readonly processes: readonly number[];
  constructor(cgroup: string, reason: string, processes: readonly number[] = [], cause?: unknown) {
    super(`Cgroup ${cgroup} was not removed: ${reason}`, { cause });
    this.processes = processes;
  }
}

/** What pods are limited and measured by; only these are switched on in a v2 tree. */
const wantedV2Controllers = ['cpuset', 'cpu', 'io', 'memory', 'hugetlb', 'pids'];

/** How often the emptiness of a cgroup is looked at after its processes were killed, in milliseconds. */
const killPollInterval = 10;

export class CgroupHierarchy {
  readonly layout: CgroupLayout;
  /** Which kind of files cgroups have here. */
  readonly version: 1 | 2;
  readonly #clock: Clock;

  constructor(layout: CgroupLayout, clock: Clock) {
    this.layout = layout;
    this.version = layout.mode === 'v2' ? 2 : 1;
    this.#clock = clock;
  }

  /** The hierarchy of the machine this runs on. */
  static async open(clock: Clock): Promise<CgroupHierarchy> {
    const [mounts, procCgroups] = await Promise.all([
      readMounts(),
      readFile('/proc/cgroups', 'utf8').catch(() => ''),
    ]);
    return new CgroupHierarchy(detectCgroups(mounts, procCgroups), clock);
  }

  /** Controllers that cgroups directly below the root can have. */
  async controllers(): Promise<string[]> {
    if (this.version === 1) return [...this.layout.trees.keys()].filter((name) => !name.startsWith('name='));
    return words(await readFile(join(this.layout.unified!, 'cgroup.controllers'), 'utf8'));
  }

  /** The directory of a cgroup in the tree that has `controller`; undefined when no tree has it. */
  directory(cgroup: string, controller: string): string | undefined {
    const tree = this.version === 2 ? this.layout.unified : this.layout.trees.get(controller);
    return tree === undefined ? undefined : join(tree, checkedName(cgroup));
  }

  /** True when the cgroup is there in every tree. */
  async exists(cgroup: string): Promise<boolean> {
    const found = await Promise.all(
      this.#ownTrees().map((tree) => isDirectory(join(tree, checkedName(cgroup)))),
    );
    return found.every(Boolean);
  }

  /**
   * Makes the cgroup and its parents, with the controllers ready for use: on v2 they are switched on for
   * children of each parent, on v1 `cpuset.cpus` and `cpuset.mems` are taken over from the parent, without
   * which no process could enter.
   */
  async create(cgroup: string): Promise<void> {
    const elements = checkedName(cgroup).split('/').filter(Boolean);
    if (this.version === 2) {
      await this.#createV2(elements);
      return;
    }
    const cpuset = this.layout.trees.get('cpuset');
    await Promise.all(
      this.#ownTrees().map(async (tree) => {
        await mkdir(join(tree, ...elements), { recursive: true, mode: 0o755 });
        if (tree === cpuset) await inheritCpuset(tree, elements);
      }),
    );
  }

  async #createV2(elements: readonly string[]): Promise<void> {
    let directory = this.layout.unified!;
    for (const element of elements) {
      const available = words(await readFile(join(directory, 'cgroup.controllers'), 'utf8'));
      const active = words(await readFile(join(directory, 'cgroup.subtree_control'), 'utf8'));
      for (const controller of wantedV2Controllers) {
        if (!available.includes(controller) || active.includes(controller)) continue;
        // One at a time: a controller that cannot be shared out (EBUSY, EOPNOTSUPP in a container) must not
        // keep the others off.
        await writeFile(join(directory, 'cgroup.subtree_control'), `+${controller}`).catch(() => {});
      }
      directory = join(directory, element);
      await mkdir(directory, { mode: 0o755 }).catch(ignore('EEXIST'));
    }
  }

  /**
   * Writes values, in order. Resolves with the files that do not exist here (controller missing or not
   * switched on); throws {@link CgroupWriteError} when the kernel refuses a value.
   */
  async write(cgroup: string, settings: readonly CgroupSetting[]): Promise<string[]> {
    const skipped: string[] = [];
    for (const setting of settings) {
      const directory = this.directory(cgroup, controllerOf(setting.file));
      if (directory === undefined) {
        skipped.push(setting.file);
        continue;
      }
      try {
        // Without O_CREAT: making files in a cgroup gives EPERM, which would hide that the file is not there.
        await writeFile(join(directory, setting.file), setting.value, { flag: 'r+' });
      } catch (cause) {
        const missing = (cause as NodeJS.ErrnoException).code === 'ENOENT';
        if (!missing || !(await isDirectory(directory))) throw new CgroupWriteError(cgroup, setting, cause);
        skipped.push(setting.file);
      }
    }
    return skipped;
  }

  /** The text of a cgroup's file without the final line break; undefined when cgroup or file is missing. */
  async read(cgroup: string, file: string): Promise<string | undefined> {
    const directory = this.directory(cgroup, controllerOf(file));
    if (directory === undefined) return undefined;
    try {
      return (await readFile(join(directory, file), 'utf8')).trimEnd();
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // ENODEV: the cgroup was removed while its file was open.
      if (code === 'ENOENT' || code === 'ENODEV') return undefined;
      throw error;
    }
  }

  /** Names of the cgroups directly below `cgroup` in any tree, sorted; empty when it does not exist. */
  async children(cgroup: string): Promise<string[]> {
    const names = await Promise.all(
      this.#allTrees().map((tree) => subdirectories(join(tree, checkedName(cgroup)))),
    );
    return [...new Set(names.flatMap((each) => each ?? []))].sort();
  }

  /** Process ids in the cgroup and everything below it. 0 stands for processes of an outer pid namespace. */
  async processes(cgroup: string): Promise<number[]> {
    const found = new Set<number>();
    await Promise.all(
      this.#allTrees().map(async (tree) => {
        for (const directory of await descendants(join(tree, checkedName(cgroup)))) {
          for (const pid of await processesIn(directory)) found.add(pid);
        }
      }),
    );
    return [...found].sort((a, b) => a - b);
  }

  /** Moves a process into the cgroup, in every tree. */
  async enter(cgroup: string, pid: number): Promise<void> {
    for (const tree of this.#ownTrees()) {
      await writeFile(join(tree, checkedName(cgroup), 'cgroup.procs'), String(pid), { flag: 'r+' });
    }
  }

  /**
   * Kills every process in the cgroup and below it, then removes the cgroups, children first. Resolves at
   * once when there is none. Throws {@link CgroupRemovalError} after `deadline` milliseconds, and when the
   * cgroup is the root or holds this process.
   */
  async remove(cgroup: string, options: { signal?: AbortSignal; deadline?: number } = {}): Promise<void> {
    const name = checkedName(cgroup);
    if (name === '/') throw new CgroupRemovalError(cgroup, 'it is the root of the hierarchy');
    const { signal, deadline = 10_000 } = options;
    // Mostly the runtime has left nothing but empty directories; the kernel refuses all others.
    if (await this.#removeDirectories(this.#allTrees().map((tree) => [join(tree, name)]))) return;
    const until = this.#clock.now() + deadline;
    for (;;) {
      signal?.throwIfAborted();
      const processes = await this.processes(name);
      if (processes.includes(process.pid))
        throw new CgroupRemovalError(cgroup, 'this very process runs in it');
      const failure: { last?: unknown } = {};
      if (processes.length > 0) await this.#kill(name, processes);
      else {
        const directories = await Promise.all(this.#allTrees().map((tree) => descendants(join(tree, name))));
        if (await this.#removeDirectories(directories, failure)) return;
      }
      if (this.#clock.now() >= until) {
        const reason =
          processes.length > 0
            ? `processes ${processes.slice(0, 10).join(', ')} did not end within ${deadline} ms after SIGKILL`
            : messageOf(failure.last);
        throw new CgroupRemovalError(cgroup, reason, processes, failure.last);
      }
      await sleep(this.#clock, killPollInterval, signal);
    }
  }

  async #kill(cgroup: string, processes: readonly number[]): Promise<void> {
    if (this.version === 2) {
      const killFile = join(this.layout.unified!, cgroup, 'cgroup.kill');
      if (await writeFile(killFile, '1', { flag: 'r+' }).then(...settled)) return;
    }
    for (const pid of processes) {
      if (pid <= 0) continue;
      try {
        process.kill(pid, 'SIGKILL');
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    }
    // A frozen process dies only when it is thawed.
    const freezer = this.layout.trees.get('freezer');
    const frozen = freezer === undefined ? [] : await descendants(join(freezer, cgroup));
    const thaw: [string, string] = this.version === 2 ? ['cgroup.freeze', '0'] : ['freezer.state', 'THAWED'];
    const directories = this.version === 2 ? await descendants(join(this.layout.unified!, cgroup)) : frozen;
    for (const directory of directories) {
      await writeFile(join(directory, thaw[0]), thaw[1], { flag: 'r+' }).catch(() => {});
    }
  }

  /**
   * Removes directories, the last of each list first, the lists side by side. False when something was busy;
   * the reason stands in `failure`.
   */
  async #removeDirectories(lists: readonly string[][], failure: { last?: unknown } = {}): Promise<boolean> {
    let clean = true;
    await Promise.all(
      lists.map(async (directories) => {
        for (const directory of directories.toReversed()) {
          await rmdir(directory).catch((error: NodeJS.ErrnoException) => {
            if (error.code === 'ENOENT') return;
            clean = false;
            failure.last = error;
          });
        }
      }),
    );
    return clean;
  }

  /** The trees in which cgroups are made. */
  #ownTrees(): string[] {
    return this.version === 2 ? [this.layout.unified!] : [...new Set(this.layout.trees.values())];
  }

  /** The trees in which a runtime may have made cgroups: on a hybrid machine the v2 tree as well. */
  #allTrees(): string[] {
    const { trees, unified } = this.layout;
    return [...new Set([...trees.values(), ...(unified === undefined ? [] : [unified])])];
  }
}

const settled: [() => true, () => false] = [() => true, () => false];

function checkedName(cgroup: string): string {
  const elements = cgroup.split('/').filter(Boolean);
  if (!cgroup.startsWith('/') || elements.some((element) => element === '.' || element === '..')) {
    throw new TypeError(`A cgroup is named by an absolute path without '..', not '${cgroup}'`);
  }
  return `/${elements.join('/')}`;
}

function controllerOf(file: string): string {
  return file.slice(0, file.indexOf('.'));
}

function words(text: string): string[] {
  return text.split(/\s+/).filter(Boolean);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function ignore(code: string): (error: NodeJS.ErrnoException) => void {
  return (error) => {
    if (error.code !== code) throw error;
  };
}

async function isDirectory(path: string): Promise<boolean> {
  return await readdir(path).then(...settled);
}

/** Names of the directories in `path`; undefined when it does not exist. */
async function subdirectories(path: string): Promise<string[] | undefined> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENODEV') return undefined;
    throw error;
  }
}

/** The directory and all below it, parents before children; empty when it does not exist. */
async function descendants(path: string): Promise<string[]> {
  const found: string[] = [];
  const pending = [path];
  for (let directory = pending.shift(); directory !== undefined; directory = pending.shift()) {
    const names = await subdirectories(directory);
    if (names === undefined) continue;
    found.push(directory);
    for (const name of names) pending.push(join(directory, name));
  }
  return found;
}

async function processesIn(directory: string): Promise<number[]> {
  try {
    return words(await readFile(join(directory, 'cgroup.procs'), 'utf8')).map(Number);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // EOPNOTSUPP: a threaded v2 cgroup; its processes are listed by its parent.
    if (code === 'ENOENT' || code === 'ENODEV' || code === 'EOPNOTSUPP') return [];
    throw error;
  }
}

/** A new v1 cpuset is empty; it takes the CPUs and memory nodes of its parent. */
async function inheritCpuset(tree: string, elements: readonly string[]): Promise<void> {
  let parent = tree;
  for (const element of elements) {
    const directory = join(parent, element);
    for (const file of ['cpuset.cpus', 'cpuset.mems']) {
      if ((await readFile(join(directory, file), 'utf8')).trim() !== '') continue;
      await writeFile(join(directory, file), await readFile(join(parent, file)), { flag: 'r+' });
    }
    parent = directory;
  }
}
