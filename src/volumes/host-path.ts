/**
 * hostPath: a file or directory of the node. It is checked, at most created, never changed and never
 * removed.
 */
import type { Stats } from 'node:fs';
import { constants } from 'node:fs';
import { chmod, mkdir, open, stat } from 'node:fs/promises';
import type { HostPathVolumeSource } from '../kubernetes/types.ts';
import { pathExists } from '../linux/path-exists.ts';
import { type MountedVolume, VolumeError, type VolumeKind, type VolumeSetUp } from './volume-kind.ts';

/** What each `type` asks of the path. */
const types: Readonly<Record<string, { what: string; fits: (facts: Stats) => boolean }>> = {
  Directory: { what: 'directory', fits: (facts) => facts.isDirectory() },
  DirectoryOrCreate: { what: 'directory', fits: (facts) => facts.isDirectory() },
  File: { what: 'file', fits: (facts) => facts.isFile() },
  FileOrCreate: { what: 'file', fits: (facts) => facts.isFile() },
  Socket: { what: 'socket file', fits: (facts) => facts.isSocket() },
  CharDevice: { what: 'character device', fits: (facts) => facts.isCharacterDevice() },
  BlockDevice: { what: 'block device', fits: (facts) => facts.isBlockDevice() },
};

export class HostPathVolumes implements VolumeKind<HostPathVolumeSource> {
  async setUp(volume: VolumeSetUp<HostPathVolumeSource>, signal: AbortSignal): Promise<MountedVolume> {
    const { path, type = '' } = volume.source;
    if (path.split('/').includes('..')) {
      throw new VolumeError(volume.name, `invalid HostPath ${JSON.stringify(path)}: must not contain '..'`);
    }
    // With type "" nothing is looked at: the runtime makes a missing directory when it mounts.
    if (type !== '') await abortable(check(volume.name, path, type), signal);
    return { name: volume.name, kind: 'hostPath', hostPath: path, readOnly: false, relabels: false };
  }
}

async function check(volume: string, path: string, type: string): Promise<void> {
  const rule = types[type];
  if (rule === undefined) throw new VolumeError(volume, `unknown hostPath type ${JSON.stringify(type)}`);
  try {
    if (!(await pathExists(path))) {
      if (type === 'DirectoryOrCreate') await createDirectory(path);
      else if (type === 'FileOrCreate') await createFile(path);
    }
    if (rule.fits(await stat(path))) return;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT' && !type.endsWith('OrCreate')) {
      throw new VolumeError(volume, failedCheck(path, rule.what), { cause });
    }
    throw new VolumeError(
      volume,
      `hostPath ${path} of volume "${volume}" cannot be used as ${type}: ${(cause as Error).message}`,
      { cause },
    );
  }
  throw new VolumeError(volume, failedCheck(path, rule.what));
}

function failedCheck(path: string, what: string): string {
  return `hostPath type check failed: ${path} is not a ${what}`;
}

async function createDirectory(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode: 0o755 });
  if (first !== undefined) await chmod(path, 0o755);
}

async function createFile(path: string): Promise<void> {
  const { O_CREAT, O_WRONLY } = constants;
  const file = await open(path, O_CREAT | O_WRONLY, 0o644);
  await file.close();
}

/** The path may lie on a network file system that hangs; giving up waiting leaves nothing to undo. */
async function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  return await new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
