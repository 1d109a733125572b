/**
 * What must be known of a pod when its source is not there to ask: one small file for each pod, written
 * atomically and with a checksum, gone when nothing is left of the pod. With it a restarted agent ends a
 * pod whose manifest has vanished the way its spec wants, keeps `status.startTime`, and does not run a
 * finished pod again.
 */
import { mkdir, readdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../concurrency/clock.ts';
import type { Pod, PodStatus } from '../kubernetes/types.ts';
import { ChecksummedFile } from '../linux/checksummed-file.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { TerminalVerdict } from './pod-view.ts';

/** What is kept of one pod. */
export interface PodRecord {
  readonly pod: Pod;
  /** Epoch milliseconds. */
  readonly startTime: number;
  readonly terminal?: TerminalVerdict;
  /** The last status, kept once the pod has come to its end. */
  readonly status?: PodStatus;
}

/** The records of all pods, one file each. */
export class PodRecords {
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #made = false;

  constructor(options: { rootDirectory: string; clock: Clock; logger: Logger }) {
    this.#directory = join(options.rootDirectory, 'kubelet-ts', 'pods');
    this.#clock = options.clock;
    this.#logger = options.logger;
  }

  async write(record: PodRecord): Promise<void> {
    if (!this.#made) await mkdir(this.#directory, { recursive: true, mode: 0o750 });
    this.#made = true;
    await this.#file(record.pod.metadata.uid).write(record);
  }

  async remove(uid: string): Promise<void> {
    await unlink(this.#path(uid)).catch(ignoreAbsent);
  }

  /** Every record that can be read. What cannot is set aside and named in the log. */
  async readAll(): Promise<PodRecord[]> {
    const names = await readdir(this.#directory).catch((error: unknown) => (ignoreAbsent(error), []));
    const uids = names.filter((name) => name.endsWith('.json')).map((name) => name.slice(0, -'.json'.length));
    const reads = await Promise.all(uids.map(async (uid) => ({ uid, read: await this.#file(uid).read() })));
    const records: PodRecord[] = [];
    for (const { uid, read } of reads) {
      if (read.kind === 'read') records.push(read.data);
      if (read.kind !== 'corrupt') continue;
      this.#logger.error(
        'A pod record is damaged; the pod is known from its source and the runtime alone',
        read.reason,
        { podUID: uid, path: this.#path(uid), setAside: read.setAside },
      );
    }
    return records;
  }

  #path(uid: string): string {
    return join(this.#directory, `${uid}.json`);
  }

  #file(uid: string): ChecksummedFile<PodRecord> {
    return new ChecksummedFile({ path: this.#path(uid), clock: this.#clock, accepts: isPodRecord });
  }
}

function isPodRecord(data: unknown): data is PodRecord {
  const record = data as Partial<PodRecord> | null;
  const metadata = record?.pod?.metadata;
  return (
    typeof record?.startTime === 'number' &&
    typeof metadata?.uid === 'string' &&
    typeof metadata.name === 'string' &&
    typeof metadata.namespace === 'string' &&
    Array.isArray(record.pod?.spec?.containers)
  );
}

function ignoreAbsent(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}
