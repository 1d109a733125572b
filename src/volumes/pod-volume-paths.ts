/**
 * Where the volumes of a pod live on disk. Pure. These paths are a contract: monitoring, CSI drivers and
 * other kubelets find volumes by them.
 */
import { join } from 'node:path';

/** The name would lead out of its directory. */
class UnsafePathElementError extends Error {
  override readonly name = 'UnsafePathElementError';
  constructor(what: string, element: string) {
    super(`The ${what} ${JSON.stringify(element)} cannot be the name of a directory`);
  }
}

function element(what: string, text: string): string {
  if (text === '' || text === '.' || text === '..' || /[/\0]/.test(text)) {
    throw new UnsafePathElementError(what, text);
  }
  return text;
}

/** The directory that has one directory for each pod. */
export function podsDirectory(root: string): string {
  return join(root, 'pods');
}

export function podDirectory(root: string, uid: string): string {
  return join(podsDirectory(root), element('pod uid', uid));
}

/** Directories of a pod that belong to volumes, in the order they are taken away. */
export const volumeDirectoryNames = ['volume-subpaths', 'plugins', 'volumes', 'volumeDevices'] as const;

/** A plugin's name in paths: `kubernetes.io/empty-dir` becomes `kubernetes.io~empty-dir`. */
function escapedPlugin(plugin: string): string {
  return plugin.replaceAll('/', '~');
}

/** The volume itself. */
export function volumeDirectory(podDirectory: string, plugin: string, volume: string): string {
  return join(podDirectory, 'volumes', escapedPlugin(plugin), element('volume name', volume));
}

/** What the volume's kind notes about it; `ready` says that it is set up. */
export function volumeNotesDirectory(podDirectory: string, plugin: string, volume: string): string {
  return join(podDirectory, 'plugins', escapedPlugin(plugin), element('volume name', volume));
}

/** Where a part of a volume is shown for one mount of one container. */
export function subPathTarget(
  podDirectory: string,
  volume: string,
  container: string,
  index: number,
): string {
  return join(
    podDirectory,
    'volume-subpaths',
    element('volume name', volume),
    element('container name', container),
    String(index),
  );
}
