/** Which process listens on a UNIX socket, as procfs tells it. */
import { readdir, readFile, readlink, realpath } from 'node:fs/promises';

export interface SocketOwnerOptions {
  /** Names of programs that may be the owner, as in `/proc/<pid>/comm`: no other process is looked into. */
  readonly programs: readonly string[];
  /** Where procfs is; another place in tests. */
  readonly proc?: string;
}

/** `undefined` when nobody listens there, or a program that is not looked for does. */
export async function socketOwner(path: string, options: SocketOwnerOptions): Promise<number | undefined> {
  const { programs, proc = '/proc' } = options;
  const resolved = await realpath(path).catch(() => path);
  const inodes = listening(await readFile(`${proc}/net/unix`, 'utf8'), new Set([path, resolved]));
  if (inodes.size === 0) return undefined;
  for (const pid of await readdir(proc)) {
    if (!/^\d+$/.test(pid)) continue;
    const program = await readFile(`${proc}/${pid}/comm`, 'utf8').catch(() => '');
    if (programs.includes(program.trim()) && (await holds(`${proc}/${pid}/fd`, inodes))) return Number(pid);
  }
  return undefined;
}

/** Links of file descriptors to sockets that listen on one of the paths: `socket:[123]`. */
function listening(table: string, paths: ReadonlySet<string>): Set<string> {
  const acceptsConnections = 0x10000;
  const found = new Set<string>();
  for (const line of table.split('\n')) {
    const [, , , flags = '', , , inode, path = ''] = line.trim().split(/\s+/);
    if (paths.has(path) && (Number.parseInt(flags, 16) & acceptsConnections) !== 0)
      found.add(`socket:[${inode}]`);
  }
  return found;
}

async function holds(directory: string, links: ReadonlySet<string>): Promise<boolean> {
  for (const fd of await readdir(directory).catch((): string[] => [])) {
    if (links.has(await readlink(`${directory}/${fd}`).catch(() => ''))) return true;
  }
  return false;
}
