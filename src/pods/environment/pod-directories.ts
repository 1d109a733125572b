/**
 * The directories and files of pods on the node's disk, beside volumes: the pod's own directory, logs, links
 * to logs, termination messages. The paths are a contract with log collectors and with people.
 *
 * Making is idempotent, removing works on what is there, and nothing is removed while anything is mounted
 * below a pod's directory.
 */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, mkdir, open, readlink, rename, rm, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { podContainers } from '../../kubernetes/init-containers.ts';
import { podLogDirectoryName } from '../../kubernetes/pod-identity.ts';
import type { Pod } from '../../kubernetes/types.ts';
import { namesIn } from '../../linux/directory-names.ts';
import { mountsAtOrBelow } from '../../linux/mount-table.ts';
import { StillMountedError } from '../../linux/mounts.ts';
import { removeTree } from '../../linux/remove-tree.ts';

/** The directories that everything lies below. */
export interface PodDirectoriesOptions {
  /** The kubelet's root directory, `/var/lib/kubelet`. */
  readonly rootDirectory: string;
  /** `podLogsDir`, `/var/log/pods`. */
  readonly podLogsDirectory: string;
  /** Where log collectors find all containers side by side, `/var/log/containers`. */
  readonly containerLogsDirectory: string;
}

/** A pod of which something is on disk. */
export interface PodOnDisk {
  readonly uid: string;
  /** It has a directory below `<root>/pods`. */
  readonly hasDirectory: boolean;
  /** Names of its directories below the pod logs directory. */
  readonly logDirectories: readonly string[];
}

type Named = Pick<Pod, 'metadata'>;

/** The longest file name of ext4 is 255 bytes, and links end in `.log`. */
const longestLinkStem = 255 - '.log'.length;

/** Makes, finds and removes what a pod has on disk beside its volumes. */
export class PodDirectories {
  readonly #options: PodDirectoriesOptions;

  constructor(options: PodDirectoriesOptions) {
    this.#options = options;
  }

  /** `<root>/pods/<uid>` */
  podDirectory(uid: string): string {
    return join(this.#options.rootDirectory, 'pods', pathElement(uid));
  }

  containerDirectory(uid: string, container: string): string {
    return join(this.podDirectory(uid), 'containers', pathElement(container));
  }

  /** `log_directory` of the sandbox. */
  logDirectory(pod: Named): string {
    return join(this.#options.podLogsDirectory, pathElement(podLogDirectoryName(pod)));
  }

  /** The hosts file of the pod. */
  hostsFile(uid: string): string {
    return join(this.podDirectory(uid), 'etc-hosts');
  }

  /**
   * Where an instance of a container leaves its termination message.
   *
   * Differs from the kubelet: the name is not random but follows from the attempt, so that a restarted agent
   * finds the message without asking the runtime for mounts.
   */
  terminationMessageFile(uid: string, container: string, attempt: number): string {
    return join(this.containerDirectory(uid, container), digest(`${container}/${attempt}`).slice(0, 8));
  }

  /**
   * Makes the pod's directories: its own and those of its containers 0750, those of its logs 0755. Answers,
   * for containers that have left logs, the attempt the next instance takes.
   */
  async prepare(pod: Pod): Promise<Readonly<Record<string, number>>> {
    const { uid } = pod.metadata;
    await mkdir(this.podDirectory(uid), { recursive: true, mode: 0o750 });
    await mkdir(this.#options.podLogsDirectory, { recursive: true, mode: 0o750 });
    const logs = this.logDirectory(pod);
    await makeDirectory(logs, 0o755);
    const attempts: Record<string, number> = {};
    await Promise.all(
      [...podContainers(pod.spec)].map(async ({ container: { name } }) => {
        await mkdir(this.containerDirectory(uid, name), { recursive: true, mode: 0o750 });
        await makeDirectory(join(logs, pathElement(name)), 0o755);
        const used = (await namesIn(join(logs, name))).map(attemptOfLog).filter((n) => n !== undefined);
        if (used.length > 0) attempts[name] = Math.max(...used) + 1;
      }),
    );
    return attempts;
  }

  /**
   * Makes an empty file for the termination message of an instance that is about to be created, mode 0666 so
   * that any user can write to it. Resolves with its path.
   */
  async createTerminationMessageFile(pod: Named, container: string, attempt: number): Promise<string> {
    const path = this.terminationMessageFile(pod.metadata.uid, container, attempt);
    await mkdir(this.containerDirectory(pod.metadata.uid, container), { recursive: true, mode: 0o750 });
    const { O_CREAT, O_TRUNC, O_WRONLY, O_NOFOLLOW } = constants;
    const file = await open(path, O_CREAT | O_TRUNC | O_WRONLY | O_NOFOLLOW, 0o666);
    try {
      await file.chmod(0o666);
    } finally {
      await file.close();
    }
    return path;
  }

  /** Links the container's log where log collectors look for it. */
  async linkLog(pod: Named, container: string, containerId: string, attempt: number): Promise<void> {
    const link = this.#logLink(pod, container, containerId);
    const target = this.#logFile(pod, container, attempt);
    await mkdir(this.#options.containerLogsDirectory, { recursive: true, mode: 0o755 });
    try {
      await symlink(target, link);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      if ((await linkTarget(link)) === target) return;
      // Not `<link>.tmp`: the name of a link may be as long as names can be.
      const temporary = join(this.#options.containerLogsDirectory, `.${digest(link)}.tmp`);
      await rm(temporary, { force: true });
      await symlink(target, temporary);
      await rename(temporary, link);
    }
  }

  /** Removes what belongs to one instance: its log with rotated parts, the link, the termination message. */
  async removeInstance(pod: Named, container: string, containerId: string, attempt: number): Promise<void> {
    const log = this.#logFile(pod, container, attempt);
    const link = this.#logLink(pod, container, containerId);
    // Long names are cut, so the link may be a newer instance's by now.
    if ((await linkTarget(link)) === log) await rm(link, { force: true });
    const directory = join(this.logDirectory(pod), pathElement(container));
    for (const name of await namesIn(directory)) {
      if (attemptOfLog(name) === attempt) await rm(join(directory, name), { force: true });
    }
    await rm(this.terminationMessageFile(pod.metadata.uid, container, attempt), { force: true });
  }

  /**
   * Removes the pod's directories, logs and links. Throws `StillMountedError` when a volume is still mounted,
   * `TreeRemovalError` naming what could not be removed; can be run again.
   */
  async erase(pod: Named): Promise<void> {
    await this.#eraseLogs([basename(this.logDirectory(pod))]);
    await this.#eraseDirectory(pod.metadata.uid);
  }

  /** As {@link erase}, for a pod of which only the uid is known. */
  async eraseOrphan(uid: string): Promise<void> {
    const found = (await this.podsOnDisk()).find((pod) => pod.uid === uid);
    await this.#eraseLogs(found?.logDirectories ?? []);
    await this.#eraseDirectory(uid);
  }

  /**
   * Every pod that has left something on disk. Log directories may be those of another agent on this
   * machine; a directory below `<root>/pods` is this one's.
   */
  async podsOnDisk(): Promise<PodOnDisk[]> {
    const directories = new Set(await namesIn(join(this.#options.rootDirectory, 'pods')));
    const logs = new Map<string, string[]>();
    for (const name of await namesIn(this.#options.podLogsDirectory)) {
      const parts = name.split('_');
      // Other programs may keep things there as well.
      if (parts.length !== 3 || !parts.every(Boolean)) continue;
      logs.set(parts[2]!, [...(logs.get(parts[2]!) ?? []), name]);
    }
    return [...new Set([...directories, ...logs.keys()])].map((uid) => ({
      uid,
      hasDirectory: directories.has(uid),
      logDirectories: logs.get(uid) ?? [],
    }));
  }

  async #eraseDirectory(uid: string): Promise<void> {
    const directory = this.podDirectory(uid);
    const mounted = await mountsAtOrBelow(directory);
    if (mounted.length > 0) {
      throw new StillMountedError(
        directory,
        mounted.map(({ mountPoint }) => mountPoint),
      );
    }
    await removeTree(directory);
  }

  async #eraseLogs(logDirectories: readonly string[]): Promise<void> {
    if (logDirectories.length === 0) return;
    const { podLogsDirectory, containerLogsDirectory } = this.#options;
    const beginnings = logDirectories.map((name) => {
      const [namespace, pod] = name.split('_');
      return `${pod}_${namespace}_`.slice(0, longestLinkStem);
    });
    for (const link of await namesIn(containerLogsDirectory)) {
      if (!beginnings.some((beginning) => link.startsWith(beginning))) continue;
      const target = await linkTarget(join(containerLogsDirectory, link));
      const isOurs = logDirectories.some((name) => target?.startsWith(`${join(podLogsDirectory, name)}/`));
      if (isOurs) await rm(join(containerLogsDirectory, link), { force: true });
    }
    for (const name of logDirectories) await removeTree(join(podLogsDirectory, name));
  }

  #logFile(pod: Named, container: string, attempt: number): string {
    return join(this.logDirectory(pod), pathElement(container), `${attempt}.log`);
  }

  #logLink(pod: Named, container: string, containerId: string): string {
    const { name, namespace } = pod.metadata;
    return join(this.#options.containerLogsDirectory, logLinkName(name, namespace, container, containerId));
  }
}

/** `<pod>_<namespace>_<container>-<id>.log`, cut in front of `.log` to what a file system can hold. */
export function logLinkName(pod: string, namespace: string, container: string, containerId: string): string {
  return `${`${pod}_${namespace}_${container}-${containerId}`.slice(0, longestLinkStem)}.log`;
}

/** The attempt a log file belongs to, rotated parts (`3.log.20260101-000000.gz`) included. */
function attemptOfLog(name: string): number | undefined {
  const found = /^(\d+)\.log(\.|$)/.exec(name);
  return found ? Number(found[1]) : undefined;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function pathElement(text: string): string {
  if (text === '' || text === '.' || text === '..' || /[/\0]/.test(text)) {
    throw new TypeError(`${JSON.stringify(text)} cannot be the name of a directory`);
  }
  return text;
}

/** The mode is exact, whatever the umask; an existing directory keeps its own. */
async function makeDirectory(path: string, mode: number): Promise<void> {
  if ((await mkdir(path, { recursive: true, mode })) !== undefined) await chmod(path, mode);
}

async function linkTarget(path: string): Promise<string | undefined> {
  try {
    return await readlink(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'EINVAL') return undefined;
    throw error;
  }
}
