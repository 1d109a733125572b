/**
 * The manifests under a path (a directory, or one file) and the pods they stand for, kept from one look to
 * the next.
 *
 * Guarantees: only what changed is read again. One bad file costs no other file anything. A file that was
 * good and is not any more keeps its last good pod until it is gone or good again; two files that name the
 * same pod never fight: the one that has the pod keeps it.
 */
import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Clock } from '../concurrency/clock.ts';
import type { Pod } from '../kubernetes/types.ts';
import type { LastGood } from './last-good-manifests.ts';
import { type ManifestError, sameManifestError } from './manifest-error.ts';
import { lookAtFile, readManifestFile } from './manifest-file.ts';
import { isIgnoredName } from './manifest-names.ts';
import { ManifestRecord, type UnkeptError } from './manifest-record.ts';
import { settleClaims } from './pod-claims.ts';
import type { DecodeManifest } from './pod-source.ts';

export interface ManifestFilesOptions {
  path: string;
  decode: DecodeManifest;
  clock: Clock;
  lastGood: LastGood;
}

/** What one look has found. */
export interface ManifestsSeen {
  readonly pods: readonly Pod[];
  readonly errors: readonly ManifestError[];
  /** See `SourceUpdate.complete`. */
  readonly complete: boolean;
  /** False when the look before found the same. */
  readonly changed: boolean;
  /** When (epoch ms) to look again at what has not settled. */
  readonly recheckAt: number | undefined;
}

type PathKind = 'directory' | 'file' | 'absent' | 'unreadable';

export class ManifestFiles {
  readonly #options: ManifestFilesOptions;
  /** By name in the directory. */
  readonly #records = new Map<string, ManifestRecord>();
  #kind: PathKind = 'unreadable';
  #pathError: UnkeptError | undefined;
  #before: Pick<ManifestsSeen, 'pods' | 'errors' | 'complete'> | undefined;

  constructor(options: ManifestFilesOptions) {
    this.#options = options;
  }

  /** What the path was at the last {@link scan}. */
  get kind(): PathKind {
    return this.#kind;
  }

  /** Looks at everything below the path. Never rejects. */
  async scan(): Promise<ManifestsSeen> {
    const names = await this.#list();
    if (names !== undefined) {
      for (const name of new Set([...names, ...this.#records.keys()])) await this.#check(name, false);
      this.#forgetRemoved();
    }
    return await this.#conclude();
  }

  /**
   * Looks only at `names` in the directory, which are known to have changed, and at what has not settled.
   * Never rejects.
   */
  async look(names: Iterable<string>): Promise<ManifestsSeen> {
    if (this.#kind !== 'directory') return await this.scan();
    const changed = new Set([...names].filter((name) => !isIgnoredName(name)));
    for (const [name, record] of this.#records) if (record.settleUntil !== undefined) changed.add(name);
    for (const name of changed) await this.#check(name, true);
    return await this.#conclude();
  }

  /** Names to look at; undefined when the path cannot be listed, in which case nothing is known. */
  async #list(): Promise<string[] | undefined> {
    const { path } = this.#options;
    const look = await lookAtFile(path);
    this.#pathError = undefined;
    this.#kind = look.kind === 'refused' ? 'file' : look.kind;
    if (this.#kind === 'absent') {
      this.#pathError = problem(path, 'it does not exist', 'Make the directory, or correct the path');
      return [];
    }
    if (this.#kind === 'file') return [basename(path)];
    try {
      const names = await readdir(path);
      return names.filter((name) => !isIgnoredName(name)).sort();
    } catch (error) {
      this.#kind = 'unreadable';
      const reason = `it cannot be listed: ${(error as Error).message}`;
      this.#pathError = problem(path, reason, 'Let the user of the kubelet read the directory');
      return undefined;
    }
  }

  /** Brings what is known of one file up to date; `force` reads it even if it seems unchanged. */
  async #check(name: string, force: boolean): Promise<void> {
    const { path, decode, clock, lastGood } = this.#options;
    const known = this.#records.get(name);
    const filePath = known?.path ?? (this.#kind === 'directory' ? join(path, name) : path);
    if (!force && known !== undefined && known.fingerprint !== '' && known.settleUntil === undefined) {
      const look = await lookAtFile(filePath);
      if (look.kind === 'file' && look.fingerprint === known.fingerprint) return;
    }
    let read = await readManifestFile(filePath);
    for (let attempt = 1; attempt < 3 && read.kind === 'read' && read.moved; attempt++) {
      read = await readManifestFile(filePath);
    }
    if (read.kind === 'absent') {
      if (known !== undefined) await this.#gone(name, known);
      return;
    }
    const record = known ?? new ManifestRecord(filePath);
    this.#records.set(name, record);
    const context = { now: clock.now(), decode, lastGood: () => lastGood.get(filePath) };
    if (read.kind === 'read') record.read(read, context);
    else record.refused(read, context);
  }

  async #gone(name: string, record: ManifestRecord): Promise<void> {
    if (!record.gone(this.#options.clock.now(), await isMovedAside(record))) return;
    this.#records.delete(name);
    this.#options.lastGood.forget(record.path);
  }

  /** Texts kept for files that went away while no agent ran. */
  #forgetRemoved(): void {
    const { path, lastGood } = this.#options;
    for (const origin of lastGood.origins()) {
      const ours = origin === path || dirname(origin) === path;
      if (ours && this.#records.get(basename(origin))?.path !== origin) lastGood.forget(origin);
    }
  }

  async #conclude(): Promise<ManifestsSeen> {
    const inTheWay = this.#settle();
    // One that stands in the way may have been renamed or removed without our knowing it yet.
    for (const record of inTheWay) {
      const { kind } = await lookAtFile(record.path);
      if (kind === 'absent') await this.#gone(basename(record.path), record);
    }
    if (inTheWay.size > 0) this.#settle();
    return this.#seen();
  }

  #settle(): Set<ManifestRecord> {
    const inOrder = [...this.#records].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, record]) => record);
    return settleClaims(inOrder, ({ path }, { text }) => {
      this.#options.lastGood.keep(path, Buffer.from(text).toString('utf8'));
    });
  }

  #seen(): ManifestsSeen {
    const pods: Pod[] = [];
    const errors: ManifestError[] = [];
    let complete = this.#kind !== 'unreadable';
    let recheckAt: number | undefined;
    // A single file that is being replaced is absent for a moment.
    if (this.#pathError !== undefined && !(this.#kind === 'absent' && this.#records.size > 0)) {
      errors.push({ ...this.#pathError, keepsLastGood: this.#records.size > 0 });
    }
    for (const name of [...this.#records.keys()].sort()) {
      const { accepted, error, duplicate, settleUntil } = this.#records.get(name)!;
      if (accepted !== undefined) pods.push(accepted.pod);
      const shown = error ?? duplicate;
      if (shown !== undefined) errors.push({ ...shown, keepsLastGood: accepted !== undefined });
      if (settleUntil === undefined) continue;
      recheckAt = Math.min(recheckAt ?? settleUntil, settleUntil);
      if (accepted === undefined) complete = false;
    }
    const before = this.#before;
    const changed =
      before?.complete !== complete ||
      before.pods.length !== pods.length ||
      before.errors.length !== errors.length ||
      pods.some((pod, index) => pod !== before.pods[index]) ||
      errors.some((error, index) => !sameManifestError(error, before.errors[index]));
    this.#before = { pods, errors, complete };
    return { pods, errors, complete, changed, recheckAt };
  }
}

/** True when the file lies under a name that is not a manifest's now: an editor's backup, a hidden file. */
async function isMovedAside({ path, inode }: ManifestRecord): Promise<boolean> {
  const directory = dirname(path);
  const names = await readdir(directory).catch(() => []);
  for (const name of names) {
    if (!isIgnoredName(name)) continue;
    const look = await lookAtFile(join(directory, name));
    if (look.kind === 'file' && look.inode === inode) return true;
  }
  return false;
}

function problem(origin: string, reason: string, remedy: string): UnkeptError {
  return { source: 'file', origin, problems: [{ reason }], remedy };
}
