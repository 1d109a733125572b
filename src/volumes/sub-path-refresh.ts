/**
 * Beyond Kubernetes: files of configMap, secret, downwardAPI and projected volumes that a container mounts by
 * `subPath` follow their object too, when the pod asks for it. A mount of one file stays on the file that was
 * there when the container started, so its content is replaced in place: a reader may see the old content,
 * the new one or, for an instant, a mixture of both. Mounted directories stay as they are.
 */
import { constants } from 'node:fs';
import { type FileHandle, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod } from '../kubernetes/types.ts';
import { mountAt } from '../linux/mount-table.ts';

/** The pod's annotation; `"true"` asks for it. */
export const refreshSubPathsAnnotation = 'volumes.kubelet-ts.io/refresh-subpaths';

export function wantsSubPathRefresh(pod: Pod): boolean {
  return pod.metadata.annotations?.[refreshSubPathsAnnotation] === 'true';
}

/**
 * Brings the file mounted on `target` to the content of `subPath` in the volume. Does nothing where nothing
 * is mounted, for directories, and for a file that the volume does not have any more.
 */
export async function refreshSubPath(options: {
  volumePath: string;
  subPath: string;
  /** Where the file is bound on the node. */
  target: string;
}): Promise<void> {
  const { volumePath, subPath, target } = options;
  if ((await mountAt(target)) === undefined) return;
  // Only the agent writes to this volume, so no link in it leads anywhere else.
  const wanted = await readFile(join(volumePath, subPath)).catch(notThere);
  if (wanted === undefined) return;
  const { O_RDWR, O_NOFOLLOW } = constants;
  const file = await open(target, O_RDWR | O_NOFOLLOW).catch(notThere);
  if (file === undefined) return;
  try {
    if (!(await file.readFile()).equals(wanted)) await overwrite(file, wanted);
  } finally {
    await file.close();
  }
}

async function overwrite(file: FileHandle, content: Buffer): Promise<void> {
  for (let at = 0; at < content.length; ) {
    at += (await file.write(content, at, content.length - at, at)).bytesWritten;
  }
  // Last, so that a reader never finds the file empty.
  await file.truncate(content.length);
}

function notThere(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT' || error.code === 'EISDIR' || error.code === 'ENOTDIR') return undefined;
  throw error;
}
