/**
 * What lies on disks: the file systems of the node and the runtime, the writable layers of containers and
 * their logs. Measured when somebody asks, at most once in the time it is given, by all askers together.
 *
 * The runtime is asked for layers, and never walked: it keeps their sizes. A runtime that does not tell, or
 * fails to, leaves those figures out and nothing else.
 */
import { realpath, statfs } from 'node:fs/promises';
import type { Clock } from '../concurrency/clock.ts';
import { SingleFlight } from '../concurrency/single-flight.ts';
import { type DirectoryUsage, directoryUsage } from '../linux/directory-usage.ts';
import { type Mount, readMounts } from '../linux/mount-table.ts';
import type { Logger } from '../telemetry/logger.ts';

/** A file system as statfs(2) tells it. */
export interface FileSystem {
  /** What is mounted there: `/dev/sda1`, `tmpfs`, `overlay`. */
  readonly device: string;
  readonly capacityBytes: number;
  readonly availableBytes: number;
  /** Everything that is not free, what is reserved for root included in the free part. */
  readonly usedBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
}

/** What the runtime says of a store or a layer. */
export interface RuntimeDisk {
  /** Where its file system is mounted; empty when the runtime does not say. */
  readonly mountpoint: string;
  readonly usedBytes: number | undefined;
  readonly inodesUsed: number | undefined;
}

/** What is asked of the container runtime. Each may reject; what it would have told is left out then. */
export interface RuntimeDisks {
  stores(signal: AbortSignal): Promise<{
    readonly images: RuntimeDisk | undefined;
    /** Where containers write; absent where that is the store of the images. */
    readonly containers: RuntimeDisk | undefined;
  }>;
  /** Writable layers by container id. */
  layers(signal: AbortSignal): Promise<ReadonlyMap<string, RuntimeDisk>>;
}

/** A container whose logs are measured. */
export interface LogOwner {
  readonly uid: string;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly directory: string;
}

export interface LogUsage extends DirectoryUsage {
  readonly owner: LogOwner;
}

export interface StoreUsage extends RuntimeDisk {
  readonly fileSystem: FileSystem | undefined;
}

export interface DiskSample {
  /** Epoch milliseconds. */
  readonly at: number;
  /** The file system of the kubelet's root directory. */
  readonly node: FileSystem | undefined;
  readonly images: StoreUsage | undefined;
  readonly containers: StoreUsage | undefined;
  readonly layers: ReadonlyMap<string, RuntimeDisk>;
  /** By {@link logKey}. */
  readonly logs: ReadonlyMap<string, LogUsage>;
}

export interface DiskUsageOptions {
  readonly rootDirectory: string;
  readonly runtime: RuntimeDisks;
  readonly logs: () => Iterable<LogOwner>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Longest that a runtime or a file system is waited for, milliseconds. */
const deadlineMs = 10_000;

export class DiskUsage {
  readonly #options: DiskUsageOptions;
  readonly #flights = new SingleFlight<DiskSample>();
  /** What has failed and was told of; told again only after it has worked. */
  readonly #failing = new Set<string>();
  /** By path: what is mounted where hardly ever changes while a node runs. */
  readonly #devices = new Map<string, string>();
  #last: DiskSample | undefined;

  constructor(options: DiskUsageOptions) {
    this.#options = options;
  }

  /** A sample at most `maxAgeMs` old. Never rejects. */
  async sample(maxAgeMs: number): Promise<DiskSample> {
    const age =
      this.#last === undefined ? Number.POSITIVE_INFINITY : this.#options.clock.now() - this.#last.at;
    if (this.#last !== undefined && age >= 0 && age <= maxAgeMs) return this.#last;
    return await this.#flights.run('all', async () => {
      this.#last = await this.#measure();
      return this.#last;
    });
  }

  async #measure(): Promise<DiskSample> {
    const { clock, rootDirectory, runtime } = this.#options;
    const at = clock.now();
    const [node, stores, layers, logs] = await Promise.all([
      this.#try('the file system of the root directory', () => this.#fileSystem(rootDirectory)),
      this.#try('the file systems of the runtime', (signal) => runtime.stores(signal)),
      this.#try('the layers of containers', (signal) => runtime.layers(signal)),
      this.#try('the logs of containers', (signal) => this.#logs(signal)),
    ]);
    const images = await this.#store(stores?.images);
    return {
      at,
      node,
      images,
      containers: stores?.containers === undefined ? images : await this.#store(stores.containers),
      layers: layers ?? new Map(),
      logs: logs ?? new Map(),
    };
  }

  async #store(store: RuntimeDisk | undefined): Promise<StoreUsage | undefined> {
    if (store === undefined) return undefined;
    const { mountpoint } = store;
    const fileSystem =
      mountpoint === '' ? undefined : await this.#try(mountpoint, () => this.#fileSystem(mountpoint));
    return { ...store, fileSystem };
  }

  async #fileSystem(path: string): Promise<FileSystem> {
    let device = this.#devices.get(path);
    if (device === undefined) {
      device = deviceAt(await realpath(path), await readMounts());
      this.#devices.set(path, device);
    }
    const { bsize, blocks, bfree, bavail, files, ffree } = await statfs(path);
    return {
      device,
      capacityBytes: blocks * bsize,
      availableBytes: bavail * bsize,
      usedBytes: (blocks - bfree) * bsize,
      inodes: files,
      inodesFree: ffree,
    };
  }

  async #logs(signal: AbortSignal): Promise<Map<string, LogUsage>> {
    const found = new Map<string, LogUsage>();
    for (const owner of this.#options.logs()) {
      const key = logKey(owner.uid, owner.container);
      if (found.has(key)) continue;
      const usage = await directoryUsage(owner.directory, { clock: this.#options.clock, signal });
      found.set(key, { ...usage, owner });
    }
    return found;
  }

  /** `undefined` when it fails or takes too long. */
  async #try<T>(what: string, read: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const { clock, logger } = this.#options;
    const late = new AbortController();
    const timedOut = new Promise<never>((_, reject) => {
      late.signal.addEventListener('abort', () => reject(late.signal.reason as Error), { once: true });
    });
    const cancel = clock.after(deadlineMs, () =>
      late.abort(new Error(`no answer within ${deadlineMs / 1000} s`)),
    );
    try {
      const value = await Promise.race([read(late.signal), timedOut]);
      this.#failing.delete(what);
      return value;
    } catch (error) {
      if (!this.#failing.has(what))
        logger.error('Measuring disks failed; figures are missing', error, { what });
      this.#failing.add(what);
      return undefined;
    } finally {
      cancel();
    }
  }
}

/** Names the logs of one container of a pod in {@link DiskSample.logs}. */
export function logKey(podUid: string, container: string): string {
  return `${podUid}/${container}`;
}

/** The source of the mount that shows `path`; of several on one place the last counts. */
function deviceAt(path: string, mounts: readonly Mount[]): string {
  let found: Mount | undefined;
  for (const mount of mounts) {
    const { mountPoint } = mount;
    const isAbove = mountPoint === '/' || path === mountPoint || path.startsWith(`${mountPoint}/`);
    if (isAbove && mountPoint.length >= (found?.mountPoint.length ?? 0)) found = mount;
  }
  return found?.source ?? '';
}
