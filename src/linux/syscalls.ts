/**
 * System calls that Node.js does not offer. Every call runs on a worker thread, so a file system that
 * hangs (a dead network mount) blocks its caller and nobody else.
 */
import { constants as os } from 'node:os';
import { loadKoffi, type NativeFunction } from './koffi.ts';

/** Flags of mount(2). */
export const MountFlag = {
  readOnly: 1,
  noSuid: 2,
  noDev: 4,
  noExec: 8,
  remount: 32,
  bind: 4096,
  recursive: 16384,
  private: 1 << 18,
  slave: 1 << 19,
  shared: 1 << 20,
} as const;

/** Flags of umount2(2). */
export const UnmountFlag = { force: 1, detach: 2, noFollow: 8 } as const;

/** Flags of openat2(2) that say how far a path may lead. */
export const Resolve = { noCrossDevice: 1, noMagicLinks: 2, noSymlinks: 4, beneath: 8, inRoot: 16 } as const;

/** O_PATH: a handle on a file that allows neither reading nor writing. Same value on every architecture. */
export const openPathOnly = 0o10000000;

/** openat2(2) has the same number on every architecture. */
export const openat2Number = 437;

/** Error codes by number, for example 16 → `EBUSY`. */
const errorCodes = new Map<number, string>(Object.entries(os.errno).map(([code, number]) => [number, code]));

/** A system call failed. `code` is the errno name, as in Node.js's own errors. */
export class SystemCallError extends Error {
  override readonly name = 'SystemCallError';
  readonly syscall: string;
  readonly code: string;
  readonly path: string;

  constructor(syscall: string, errno: number, path: string, detail = '') {
    const code = errorCodes.get(errno) ?? `errno ${errno}`;
    super(`${code}: ${syscall} failed on '${path}'${detail === '' ? '' : ` (${detail})`}`);
    this.syscall = syscall;
    this.code = code;
    this.path = path;
  }
}

interface Functions {
  mount: NativeFunction;
  umount2: NativeFunction;
  syscall: NativeFunction;
  flock: NativeFunction;
  errno: () => number;
}

let functions: Promise<Functions> | undefined;

async function bindFunctions(): Promise<Functions> {
  const koffi = await loadKoffi();
  const libc = koffi.load(null);
  return {
    mount: libc.func('int mount(const void *, const void *, const void *, unsigned long, const void *)'),
    umount2: libc.func('int umount2(const void *, int)'),
    syscall: libc.func('long syscall(long, int, const void *, const void *, size_t)'),
    flock: libc.func('int flock(int, int)'),
    errno: () => koffi.errno(),
  };
}

/** A NUL-terminated C string. Paths may hold any bytes, so buffers are taken as they are. */
function cString(value: string | Buffer): Buffer {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value;
  if (bytes.includes(0)) throw new TypeError(`A path or option must not hold a NUL byte: ${String(value)}`);
  return Buffer.concat([bytes, Buffer.alloc(1)]);
}

async function call(
  pick: (all: Functions) => NativeFunction,
  values: readonly unknown[],
): Promise<{ value: number; errno: number }> {
  functions ??= bindFunctions();
  const all = await functions;
  return await new Promise((resolve, reject) => {
    pick(all).async(...values, (error: Error | null, value: number) => {
      if (error) reject(error);
      else resolve({ value, errno: value === -1 ? all.errno() : 0 });
    });
  });
}

/** mount(2). `data` is the comma separated option text of the file system. */
export async function mount(options: {
  source: string;
  target: string;
  type?: string;
  flags?: number;
  data?: string;
}): Promise<void> {
  const { source, target, type, flags = 0, data } = options;
  const { value, errno } = await call(
    (all) => all.mount,
    [
      cString(source),
      cString(target),
      type === undefined ? null : cString(type),
      flags,
      data === undefined ? null : cString(data),
    ],
  );
  if (value === -1) {
    const what = [
      `source '${source}'`,
      ...(type ? [`type ${type}`] : []),
      ...(data ? [`options ${data}`] : []),
    ];
    throw new SystemCallError('mount', errno, target, what.join(', '));
  }
}

/** umount2(2); never follows a symbolic link at `target`. */
export async function umount(target: string | Buffer, flags = 0): Promise<void> {
  const { value, errno } = await call((all) => all.umount2, [cString(target), flags | UnmountFlag.noFollow]);
  if (value === -1) throw new SystemCallError('umount2', errno, String(target));
}

/**
 * openat2(2): opens `path` relative to the directory `directoryFd` within the bounds of `resolve`.
 * Resolves with a file descriptor that the caller closes. EXDEV or ELOOP mean the path led out of bounds.
 */
export async function openat2(
  directoryFd: number,
  path: string | Buffer,
  how: { flags: number; mode?: number; resolve: number },
): Promise<number> {
  const structure = Buffer.alloc(24);
  structure.writeBigUInt64LE(BigInt(how.flags | closeOnExec), 0);
  structure.writeBigUInt64LE(BigInt(how.mode ?? 0), 8);
  structure.writeBigUInt64LE(BigInt(how.resolve), 16);
  const name = cString(path);
  for (let attempt = 0; ; attempt++) {
    const { value, errno } = await call(
      (all) => all.syscall,
      [openat2Number, directoryFd, name, structure, structure.length],
    );
    if (value !== -1) return value;
    // EAGAIN: something was renamed meanwhile, so the kernel cannot vouch for the bounds; look again.
    if (errno !== os.errno.EAGAIN || attempt >= 100)
      throw new SystemCallError('openat2', errno, String(path));
  }
}

const closeOnExec = 0o2000000;

/**
 * flock(2) without waiting: true when `fd` now holds the lock, false when another process does. The kernel
 * releases it when the descriptor is closed, so a killed process leaves none.
 */
export async function tryLock(fd: number, mode: 'exclusive' | 'shared' = 'exclusive'): Promise<boolean> {
  const nonBlocking = 4;
  const { value, errno } = await call((all) => all.flock, [fd, (mode === 'exclusive' ? 2 : 1) | nonBlocking]);
  if (value !== -1) return true;
  if (errno === os.errno.EAGAIN || errno === os.errno.EWOULDBLOCK) return false;
  throw new SystemCallError('flock', errno, `/proc/self/fd/${fd}`);
}

/** Releases a lock taken by {@link tryLock}. */
export async function unlock(fd: number): Promise<void> {
  const { value, errno } = await call((all) => all.flock, [fd, 8]);
  if (value === -1) throw new SystemCallError('flock', errno, `/proc/self/fd/${fd}`);
}
