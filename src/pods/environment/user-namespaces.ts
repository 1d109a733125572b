/**
 * Ranges of the node's user ids for pods with a user namespace of their own (`hostUsers: false`). Root in
 * such a pod is nobody on the node, and two pods are strangers to each other.
 *
 * Guarantees: no two pods have an id in common; a pod keeps its range until it is released, also over a
 * restart of the agent, because a file in the pod's directory holds it before anyone is told of it.
 */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { readFileIfExists, writeFileAtomically } from '../../linux/atomic-file.ts';
import { namesIn } from '../../linux/directory-names.ts';
import type { UserNamespaceRange } from '../../runtime/translation/namespaces.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { IdRange } from './sub-ids.ts';

/** A pod cannot have a range of ids; the message says why and what the operator can do. */
export class UserNamespaceError extends Error {
  override readonly name = 'UserNamespaceError';
}

/** The ids there are to hand out, and where it is noted who has which. */
export interface UserNamespacesOptions {
  /** The kubelet's root directory; the files are `<root>/pods/<uid>/userns`. */
  readonly rootDirectory: string;
  /** The ids that pods may have. */
  readonly available: IdRange;
  /** `userNamespaces.idsPerPod`. */
  readonly idsPerPod: number;
  readonly logger: Logger;
}

/** Hands out a range of ids to each pod with a user namespace of its own, and takes it back. */
export class UserNamespaces {
  readonly #options: UserNamespacesOptions;
  readonly #ranges = new Map<string, UserNamespaceRange>();
  readonly #writing = new Map<string, Promise<UserNamespaceRange>>();
  /** Pods whose file cannot be understood: which ids they have is not known. */
  readonly #unreadable = new Set<string>();

  constructor(options: UserNamespacesOptions) {
    this.#options = options;
  }

  /** Learns from the disk which ranges are taken; has to be done before the first {@link allocate}. */
  async recover(): Promise<void> {
    const { rootDirectory, logger } = this.#options;
    for (const uid of await namesIn(join(rootDirectory, 'pods'))) {
      const text = await readFileIfExists(this.#file(uid));
      if (text === undefined) continue;
      const range = parseMappings(text);
      if (range) {
        this.#ranges.set(uid, range);
        continue;
      }
      this.#unreadable.add(uid);
      logger.error('The user ids of a pod are not known; it gets no new container', 'damaged file', {
        podUID: uid,
        path: this.#file(uid),
      });
    }
  }

  /**
   * The pod's range: the one it has, else a free one. Rejects with {@link UserNamespaceError} when there is
   * none, with the system's error when the file cannot be written; then nothing is kept.
   */
  allocate(uid: string): Promise<UserNamespaceRange> {
    const writing = this.#writing.get(uid);
    if (writing) return writing;
    const known = this.#ranges.get(uid);
    if (known) return Promise.resolve(known);
    const made = this.#allocate(uid).finally(() => this.#writing.delete(uid));
    this.#writing.set(uid, made);
    return made;
  }

  async #allocate(uid: string): Promise<UserNamespaceRange> {
    if (this.#unreadable.has(uid)) {
      throw new UserNamespaceError(
        `${this.#file(uid)} does not tell which user ids the pod has; delete the pod and make it anew`,
      );
    }
    const range = this.#freeRange();
    // Taken from this moment on; another pod may ask before the file is there.
    this.#ranges.set(uid, range);
    try {
      await mkdir(this.#directory(uid), { recursive: true, mode: 0o750 });
      await writeFileAtomically(this.#file(uid), formatMappings(range), { mode: 0o644 });
    } catch (error) {
      this.#ranges.delete(uid);
      throw error;
    }
    return range;
  }

  /** Gives the pod's range back, once no process of the pod is left. */
  async release(uid: string): Promise<void> {
    await this.#writing.get(uid)?.catch(() => {});
    if (!this.#ranges.has(uid) && !this.#unreadable.has(uid)) return;
    await rm(this.#file(uid), { force: true });
    this.#ranges.delete(uid);
    this.#unreadable.delete(uid);
  }

  /** The first multiple of `idsPerPod` in the available ids that nobody has a part of. */
  #freeRange(): UserNamespaceRange {
    const { available, idsPerPod } = this.#options;
    const end = available.first + available.count;
    const taken = [...this.#ranges.values()].sort((a, b) => a.hostId - b.hostId);
    let hostId = Math.ceil(available.first / idsPerPod) * idsPerPod;
    for (const range of taken) {
      if (range.hostId >= hostId + idsPerPod) break;
      const next = range.hostId + range.length;
      if (next > hostId) hostId = Math.ceil(next / idsPerPod) * idsPerPod;
    }
    if (hostId + idsPerPod <= end) return { hostId, length: idsPerPod };
    throw new UserNamespaceError(
      `no ${idsPerPod} user ids are left for the pod: ${taken.length} pods have ranges in ` +
        `${available.first}-${end - 1}; give the user kubelet more in /etc/subuid and /etc/subgid`,
    );
  }

  #directory(uid: string): string {
    if (uid === '' || uid === '.' || uid === '..' || /[/\0]/.test(uid)) {
      throw new TypeError(`${JSON.stringify(uid)} cannot be the name of a directory`);
    }
    return join(this.#options.rootDirectory, 'pods', uid);
  }

  #file(uid: string): string {
    return join(this.#directory(uid), 'userns');
  }
}

function formatMappings({ hostId, length }: UserNamespaceRange): string {
  const mappings = [{ hostId, containerId: 0, length }];
  return JSON.stringify({ uidMappings: mappings, gidMappings: mappings });
}

/** `undefined` unless the text holds one mapping from id 0 on, the same for users and groups. */
function parseMappings(text: string): UserNamespaceRange | undefined {
  const users = onlyMapping(text, 'uidMappings');
  const groups = onlyMapping(text, 'gidMappings');
  if (!users || users.hostId !== groups?.hostId || users.length !== groups.length) return undefined;
  return users;
}

function onlyMapping(text: string, list: 'uidMappings' | 'gidMappings'): UserNamespaceRange | undefined {
  let parsed: Partial<Record<string, unknown>> | null;
  try {
    parsed = JSON.parse(text) as Partial<Record<string, unknown>> | null;
  } catch {
    return undefined;
  }
  const mappings = parsed?.[list];
  if (!Array.isArray(mappings) || mappings.length !== 1) return undefined;
  const { hostId, containerId, length } = (mappings[0] ?? {}) as Partial<Record<string, unknown>>;
  if (containerId !== 0 || !isId(hostId) || !isId(length) || length === 0) return undefined;
  return { hostId, length };
}

function isId(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < 2 ** 32;
}
