/**
 * Reads what one cgroup has used and may use, from the files of cgroup v1 or v2.
 *
 * Reading is synchronous and costs about ten small files; see `KernelFileReader`.
 */
import { statSync } from 'node:fs';
import type { Clock } from '../../concurrency/clock.ts';
import type { CgroupLayout } from '../cgroup-layout.ts';
import { CgroupFiles, directoryIn } from './cgroup-files.ts';
import type { CgroupUsage, UsageDetail } from './cgroup-usage.ts';
import { CgroupUsageV1 } from './cgroup-usage-v1.ts';
import { readUsageV2 } from './cgroup-usage-v2.ts';

export class CgroupUsageReader {
  readonly #layout: CgroupLayout;
  readonly #clock: Clock;
  readonly #files = new CgroupFiles();
  readonly #v1: CgroupUsageV1 | undefined;

  constructor(layout: CgroupLayout, clock: Clock) {
    this.#layout = layout;
    this.#clock = clock;
    this.#v1 = layout.mode === 'v2' ? undefined : new CgroupUsageV1(layout.trees, this.#files);
  }

  /** Which kind of files cgroups have here. */
  get version(): 1 | 2 {
    return this.#v1 ? 1 : 2;
  }

  /** Any other file of the kernel, through the same buffer. */
  readFile(path: string): string | undefined {
    return this.#files.text(path);
  }

  /** The directory of a cgroup in the tree that counts memory, or in the one tree of v2. */
  directory(cgroup: string): string | undefined {
    return directoryIn(this.#v1 ? this.#layout.trees.get('memory') : this.#layout.unified, cgroup);
  }

  /** When the cgroup was made, as well as its directory tells, epoch milliseconds. */
  createdAt(cgroup: string): number | undefined {
    const directory = this.directory(cgroup);
    if (directory === undefined) return undefined;
    return statSync(directory, { throwIfNoEntry: false })?.mtimeMs;
  }

  /** The first process of the cgroup itself; `undefined` when it has none or is gone. */
  firstProcess(cgroup: string): number | undefined {
    return this.#files.processes(this.directory(cgroup))?.first;
  }

  /** `undefined` when there is no such cgroup. */
  read(cgroup: string, detail: UsageDetail): CgroupUsage | undefined {
    const at = this.#clock.now();
    if (this.#v1) return this.#v1.read(cgroup, at, detail);
    return readUsageV2(this.#files, this.directory(cgroup), at, detail);
  }
}
