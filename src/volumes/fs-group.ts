/**
 * Gives a volume to the pod's `fsGroup`, so that containers of any user can write to it. Other pods may write
 * to the volume meanwhile: every file is reached through the descriptor of its directory and changed through a
 * descriptor of its own, so that no link put in its place leads to a file of the node.
 */
import {
  chmod as chmodPath,
  chown as chownPath,
  closeSync,
  constants,
  fstat,
  lchown,
  lstat,
  open,
  type Stats,
} from 'node:fs';
import { promisify } from 'node:util';
import type { Clock } from '../concurrency/clock.ts';
import { children, entryPath, openDirectory } from '../linux/directory-handle.ts';
import { openPathOnly } from '../linux/syscalls.ts';

export interface FsGroupChange {
  readonly directory: string;
  /** The group id. */
  readonly group: number;
  /** Containers only read the volume: the group is not allowed to write. */
  readonly readOnly?: boolean;
  /** `fsGroupChangePolicy`; with `OnRootMismatch` a volume whose root is right is taken to be right. */
  readonly policy?: 'Always' | 'OnRootMismatch' | undefined;
  /** Told after half a minute, and then every minute, that the change goes on. */
  readonly onProgress?: ((message: string) => void) | undefined;
  readonly clock: Clock;
}

const setGid = 0o2000;
const firstReportMs = 30_000;
const reportMs = 60_000;
/** Files changed together: one by one, each would cost several times as much. */
const batchSize = 64;
const advice =
  'https://kubernetes.io/docs/tasks/configure-pod-container/security-context/' +
  '#configure-volume-permission-and-ownership-change-policy-for-pods';

/**
 * Sets the group of `directory` and everything in it, and adds the permissions a group needs: 0660 to files,
 * 0770 and setgid to directories (0440 and 0550 when read-only). Links get the group, what they point to is
 * left alone; what is mounted inside is left alone too. The root comes last, so an interrupted run shows.
 * Resolves with the number of files, links and directories that were looked at; 0 when the policy spared it.
 */
export async function applyFsGroup(change: FsGroupChange, signal: AbortSignal): Promise<number> {
  const { directory, group, readOnly = false, policy, clock, onProgress } = change;
  const bits: Bits = readOnly
    ? { file: 0o440, directory: 0o550 | setGid }
    : { file: 0o660, directory: 0o770 | setGid };
  if (policy === 'OnRootMismatch') {
    if (isRight(await lookedAt(Buffer.from(directory)), group, bits.directory)) return 0;
  }

  let processed = 0;
  let cancel = clock.after(firstReportMs, () => {
    onProgress?.(
      `Setting volume ownership for ${directory} is taking longer than expected, ` +
        `consider using OnRootMismatch - ${advice}`,
    );
    const again = () => {
      onProgress?.(`Setting volume ownership for ${directory}, processed ${processed} files.`);
      cancel = clock.after(reportMs, again);
    };
    cancel = clock.after(reportMs, again);
  });
  const root = await openDirectory(undefined, directory);
  try {
    await walk(root, { group, bits, signal, done: (count) => (processed += count) });
  } finally {
    cancel();
    closeSync(root);
  }
  return processed;
}

interface Bits {
  readonly file: number;
  readonly directory: number;
}

interface Walk {
  readonly group: number;
  readonly bits: Bits;
  readonly signal: AbortSignal;
  readonly done: (count: number) => void;
}

/** Children before the directory itself. */
async function walk(directory: number, scope: Walk): Promise<void> {
  let batch: Promise<void>[] = [];
  const flush = async () => {
    await Promise.all(batch);
    scope.done(batch.length);
    batch = [];
  };
  for await (const { name, isDirectory } of children(directory)) {
    scope.signal.throwIfAborted();
    if (isDirectory) await descend(directory, name, scope);
    else if (batch.push(give(entryPath(directory, name), scope)) >= batchSize) await flush();
  }
  await flush();
  await change(directory, await factsOf(directory), scope);
  scope.done(1);
}

async function descend(parent: number, name: Buffer, scope: Walk): Promise<void> {
  let child: number;
  try {
    child = await openDirectory(parent, name);
  } catch (error) {
    // Gone, replaced by something that is no directory, or where something is mounted.
    if (['ENOENT', 'ENOTDIR', 'ELOOP', 'EXDEV'].includes((error as NodeJS.ErrnoException).code ?? '')) return;
    throw error;
  }
  try {
    await walk(child, scope);
  } finally {
    closeSync(child);
  }
}

const opened = promisify<Buffer, number, number>(open);
const lookedAt = promisify<Buffer, Stats>(lstat);
const factsOf = promisify<number, Stats>(fstat);
const chown = promisify(chownPath);
const chmod = promisify(chmodPath);
const chownLink = promisify(lchown);

async function give(path: Buffer, scope: Walk): Promise<void> {
  try {
    const facts = await lookedAt(path);
    if (facts.isSymbolicLink()) {
      if (facts.gid !== scope.group) await chownLink(path, facts.uid, scope.group);
    } else if (!isRight(facts, scope.group, wantedOf(facts, scope))) {
      await changeOpened(path, scope);
    }
  } catch (error) {
    // ELOOP, EOPNOTSUPP: a link has taken its place.
    if (!['ENOENT', 'ELOOP', 'EOPNOTSUPP'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}

/** Looks again at what it has opened: something else may stand there by now. */
async function changeOpened(path: Buffer, scope: Walk): Promise<void> {
  const file = await opened(path, openPathOnly | constants.O_NOFOLLOW);
  try {
    const facts = await factsOf(file);
    if (!facts.isSymbolicLink()) await change(file, facts, scope);
  } finally {
    // Without data to write back, this does not wait for any disk.
    closeSync(file);
  }
}

/** Of the opened file itself, whatever stands at its name by now. */
async function change(file: number, facts: Stats, scope: Walk): Promise<void> {
  const { group } = scope;
  const wanted = wantedOf(facts, scope);
  if (isRight(facts, group, wanted)) return;
  const path = `/proc/self/fd/${file}`;
  if (facts.gid !== group) await chown(path, facts.uid, group);
  // After chown, which takes setuid and setgid away.
  await chmod(path, (facts.mode & 0o7777) | wanted);
}

function wantedOf(facts: Stats, { bits }: Walk): number {
  return facts.isDirectory() ? bits.directory : bits.file;
}

function isRight({ gid, mode }: Stats, group: number, wanted: number): boolean {
  return gid === group && (mode & wanted) === wanted;
}
