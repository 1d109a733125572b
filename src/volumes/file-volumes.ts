/**
 * What volumes made of files from the API have in common: a directory or a tmpfs, files that change all at
 * once, and being read-only. Each kind adds only which files there are.
 */
import { chmod, chown, lstat, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathExists } from '../linux/path-exists.ts';
import { FilePathError, type Files, safeFilePath, writeFilesAtomically } from './atomic-writer.ts';
import type { MemoryFileSystems } from './memory-file-systems.ts';
import { nestedMountPoints } from './nested-mounts.ts';
import { volumeDirectory } from './pod-volume-paths.ts';
import {
  type MountedVolume,
  VolumeError,
  type VolumeKind,
  type VolumeSetUp,
  type VolumeSourceName,
} from './volume-kind.ts';

/** A volume whose files can be brought up to date while containers use them. */
export interface RefreshableKind<Source> extends VolumeKind<Source> {
  /** Names the volume's directory: `kubernetes.io/configmap`. */
  readonly plugin: string;
  /** Does nothing where the volume has not been set up. Otherwise as `setUp`; a failure keeps the old files. */
  refresh(volume: VolumeSetUp<Source>, signal: AbortSignal): Promise<void>;
}

export interface FilesRequest<Source> extends VolumeSetUp<Source> {
  /** The text of a file as it is in the volume now; `undefined` when there is none. */
  readonly existing: (path: string) => Promise<string | undefined>;
}

export interface FileVolumesOptions<Source> {
  readonly kind: VolumeSourceName;
  /** `kubernetes.io/configmap` */
  readonly plugin: string;
  /** Where the files are: absent for the pod's directory on disk. */
  readonly memory?: MemoryFileSystems | undefined;
  /** Works the files out; throws {@link VolumeError}. */
  readonly files: (request: FilesRequest<Source>, signal: AbortSignal) => Promise<Files>;
}

export class FileVolumes<Source> implements RefreshableKind<Source> {
  readonly plugin: string;
  readonly #options: FileVolumesOptions<Source>;
  /** By directory: the last run on it. Runs on one directory follow each other. */
  readonly #runs = new Map<string, Promise<unknown>>();

  constructor(options: FileVolumesOptions<Source>) {
    this.plugin = options.plugin;
    this.#options = options;
  }

  async setUp(volume: VolumeSetUp<Source>, signal: AbortSignal): Promise<MountedVolume> {
    const { kind } = this.#options;
    const directory = volumeDirectory(volume.podDirectory, this.plugin, volume.name);
    await this.#inTurn(directory, () => this.#write(volume, directory, signal));
    return { name: volume.name, kind, hostPath: directory, readOnly: true, relabels: true };
  }

  async refresh(volume: VolumeSetUp<Source>, signal: AbortSignal): Promise<void> {
    const directory = volumeDirectory(volume.podDirectory, this.plugin, volume.name);
    await this.#inTurn(directory, async () => {
      if (await pathExists(join(directory, '..data'), { ofLink: true }))
        await this.#write(volume, directory, signal);
    });
  }

  async #write(volume: VolumeSetUp<Source>, directory: string, signal: AbortSignal): Promise<void> {
    const { name, pod } = volume;
    const group = pod.spec.securityContext?.fsGroup;
    const existing = (path: string) => readText(join(directory, '..data', safeFilePath(path)));
    try {
      // Before anything is made on disk: a volume that waits for its content leaves nothing to take down.
      const files = await this.#options.files({ ...volume, existing }, signal);
      signal.throwIfAborted();
      await this.#makeDirectory(directory, volume, group);
      await writeFilesAtomically({ directory, files, group });
      for (const path of nestedMountPoints(pod.spec, name)) {
        await mkdir(join(directory, path), { recursive: true, mode: 0o755 }).catch(standsAlready);
      }
    } catch (cause) {
      if (cause instanceof FilePathError) throw new VolumeError(name, cause.message, { cause });
      throw cause;
    }
  }

  async #makeDirectory(
    directory: string,
    { pod }: VolumeSetUp<Source>,
    group: number | undefined,
  ): Promise<void> {
    const isNew = (await mkdir(directory, { recursive: true, mode: 0o750 })) !== undefined;
    const { memory } = this.#options;
    if (memory) await memory.mount(directory, pod.spec);
    else if (isNew || !(await pathExists(join(directory, '..data'), { ofLink: true })))
      await chmod(directory, 0o777);
    if (group === undefined) return;
    const facts = await lstat(directory);
    if (facts.gid === group && (facts.mode & 0o2770) === 0o2770) return;
    await chown(directory, facts.uid, group);
    await chmod(directory, (facts.mode & 0o7777) | 0o2770);
  }

  async #inTurn(directory: string, run: () => Promise<void>): Promise<void> {
    const former = this.#runs.get(directory) ?? Promise.resolve();
    const current = former.catch(() => {}).then(run);
    this.#runs.set(directory, current);
    try {
      await current;
    } finally {
      if (this.#runs.get(directory) === current) this.#runs.delete(directory);
    }
  }
}

async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw error;
  }
}

/** A file of the volume may have the name; the mount then covers it. */
function standsAlready(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'EEXIST' || error.code === 'ENOTDIR') return undefined;
  throw error;
}
