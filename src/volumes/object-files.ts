/** The files that a config map or secret makes in a volume. Pure. */
import type { Files, WrittenFile } from './atomic-writer.ts';
import type { ObjectEntries } from './volume-contents.ts';
import { VolumeError } from './volume-kind.ts';

/** Permission bits of a file nobody has said anything about. */
export const defaultFileMode = 0o644;

/** A config map or secret as a volume refers to it. */
export interface ObjectFilesRequest {
  readonly kind: 'configmap' | 'secret';
  readonly name: string;
  /** The volume's name in the pod. */
  readonly volume: string;
  /** Absent when there is no such object. */
  readonly entries: ObjectEntries | undefined;
  /** Keys to show and where; without any, every key is a file of its name. */
  readonly items?: readonly { readonly key: string; readonly path: string; readonly mode?: number }[];
  readonly optional?: boolean | undefined;
  readonly defaultMode: number;
}

/** Throws {@link VolumeError} for an object or key that is missing and not optional. */
export function objectFiles(request: ObjectFilesRequest): Files {
  const { kind, name, volume, entries, items, optional, defaultMode } = request;
  const files = new Map<string, WrittenFile>();
  if (entries === undefined) {
    if (optional) return files;
    throw new VolumeError(volume, `${kind} ${JSON.stringify(name)} not found`);
  }
  if (!items || items.length === 0) {
    for (const [key, content] of entries) files.set(key, { content, mode: defaultMode });
    return files;
  }
  for (const { key, path, mode = defaultMode } of items) {
    const content = entries.get(key);
    if (content !== undefined) files.set(path, { content, mode });
    else if (!optional) {
      throw new VolumeError(volume, `${kind} ${JSON.stringify(name)} has no key ${JSON.stringify(key)}`);
    }
  }
  return files;
}
