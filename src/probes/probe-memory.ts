/**
 * Remembers across restarts of the agent which containers had started and were ready, so that a restart
 * turns no pod unready: `<root>/kubelet-ts/probes.json`, by container id.
 *
 * Guarantees: written atomically, only after a change, and changes that come together are one write. A
 * damaged file is set aside and reported; without it containers are probed anew. Losing the last moments
 * before a crash costs no more than that.
 */
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '../concurrency/clock.ts';
import { LatestOnly } from '../concurrency/latest-only.ts';
import { ChecksummedFile } from '../linux/checksummed-file.ts';
import type { Logger } from '../telemetry/logger.ts';

/** What was known of a container's probes when it was last written down. */
export interface RememberedHealth {
  readonly started: boolean;
  readonly ready: boolean;
}

/** What the prober needs of it. */
export interface ProbeMemory {
  recall(containerId: string): RememberedHealth | undefined;
  remember(containerId: string, health: RememberedHealth): void;
  forget(containerId: string): void;
}

type Kept = Record<string, RememberedHealth>;

/** How long a change waits for others to be written with. */
const gatherMs = 500;

/** The memory of probes on disk: one checksummed file for all containers. */
export class ProbeMemoryFile implements ProbeMemory {
  readonly #file: ChecksummedFile<Kept>;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #known = new Map<string, RememberedHealth>();
  readonly #writing: LatestOnly;
  #cancelTimer: (() => void) | undefined;
  #dirty = false;
  #failed = false;
  #write: Promise<void> = Promise.resolve();

  constructor({ rootDirectory, clock, logger }: { rootDirectory: string; clock: Clock; logger: Logger }) {
    const path = join(rootDirectory, 'kubelet-ts', 'probes.json');
    this.#file = new ChecksummedFile({ path, clock, accepts: isKept });
    this.#clock = clock;
    this.#logger = logger;
    this.#writing = new LatestOnly(
      () => (this.#write = this.#save()),
      () => {},
    );
  }

  /** Reads what an earlier agent left. Call once, before the prober. */
  async load(): Promise<void> {
    const read = await this.#file.read();
    if (read.kind === 'read') {
      for (const [id, { started, ready }] of Object.entries(read.data))
        this.#known.set(id, { started, ready });
    }
    if (read.kind === 'corrupt') {
      this.#logger.warn('What probes had said before is lost; containers are probed anew', {
        file: this.#file.path,
        reason: read.reason,
        setAside: read.setAside,
      });
    }
  }

  recall(containerId: string): RememberedHealth | undefined {
    return this.#known.get(containerId);
  }

  remember(containerId: string, { started, ready }: RememberedHealth): void {
    // Not started is what is assumed of a container nobody knows.
    if (!started && !ready) return this.forget(containerId);
    const before = this.#known.get(containerId);
    if (before?.started === started && before.ready === ready) return;
    this.#known.set(containerId, { started, ready });
    this.#changed();
  }

  forget(containerId: string): void {
    if (this.#known.delete(containerId)) this.#changed();
  }

  /** Forgets every container but these: what the runtime shows at the start of the agent. */
  retain(containerIds: Iterable<string>): void {
    const kept = new Set(containerIds);
    for (const id of this.#known.keys()) if (!kept.has(id)) this.forget(id);
  }

  /** Writes what is not written yet, when the agent stops. */
  async flush(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    await this.#write;
    if (this.#dirty) await this.#save();
  }

  #changed(): void {
    this.#dirty = true;
    this.#cancelTimer ??= this.#clock.after(gatherMs, () => {
      this.#cancelTimer = undefined;
      this.#writing.refresh();
    });
  }

  async #save(): Promise<void> {
    this.#dirty = false;
    try {
      await mkdir(dirname(this.#file.path), { recursive: true, mode: 0o750 });
      await this.#file.write(Object.fromEntries(this.#known));
      this.#failed = false;
    } catch (error) {
      this.#dirty = true;
      if (!this.#failed) {
        this.#logger.error('Readiness cannot be remembered across a restart of the agent', error, {
          file: this.#file.path,
        });
      }
      this.#failed = true;
    }
  }
}

function isKept(data: unknown): data is Kept {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) return false;
  return Object.values(data as Record<string, unknown>).every(
    (entry) =>
      typeof entry === 'object' &&
      entry !== null &&
      typeof (entry as RememberedHealth).started === 'boolean' &&
      typeof (entry as RememberedHealth).ready === 'boolean',
  );
}
