/** Which process listens on a TCP port of this machine. */
import { readdir, readFile, readlink } from 'node:fs/promises';

export interface PortHolder {
  readonly pid: number;
  /** Program and arguments. */
  readonly commandLine: readonly string[];
}

/** `undefined` when nobody listens, or when the process cannot be seen from here (rights, namespaces). */
export async function portHolder(port: number): Promise<PortHolder | undefined> {
  const tables = await Promise.all(
    ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => readFile(path, 'utf8').catch(() => '')),
  );
  const inodes = new Set(tables.flatMap((table) => listeningInodes(table, port)));
  if (inodes.size === 0) return undefined;
  const entries = await readdir('/proc');
  for (const pid of entries.filter((name) => /^\d+$/.test(name))) {
    const descriptors = await readdir(`/proc/${pid}/fd`).catch((): string[] => []);
    for (const descriptor of descriptors) {
      const target = await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => '');
      const [, inode] = /^socket:\[(\d+)\]$/.exec(target) ?? [];
      if (inode === undefined || !inodes.has(inode)) continue;
      const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      return { pid: Number(pid), commandLine: commandLine.split('\0').filter((word) => word !== '') };
    }
  }
  return undefined;
}

const listenState = '0A';

/** Lines are `sl local_address rem_address st … inode`, addresses in hexadecimal. */
function listeningInodes(table: string, port: number): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return table.split('\n').flatMap((line) => {
    const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/);
    return state === listenState && local.endsWith(suffix) && inode !== undefined ? [inode] : [];
  });
}
