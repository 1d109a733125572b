/**
 * What this node's agent has pulled and with whose credentials, in small files that survive it
 * (`<root>/image_manager`, the kubelet's own format): a pull leaves `pulling/sha256-…` while it runs and
 * `pulled/sha256-…` when it is done, so an image is never mistaken for one that was there before, whatever
 * moment the agent is killed at.
 *
 * A file that cannot be understood counts as "pulled, and nobody is known to have access": the next pod
 * pulls.
 */
import { createHash } from 'node:crypto';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../concurrency/clock.ts';
import { isObject } from '../../kubernetes/json-object.ts';
import { readFileIfExists, writeFileAtomically } from '../../linux/atomic-file.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { type Metrics, silentMetrics } from '../../telemetry/metrics.ts';
import {
  type ImageOpeners,
  needsVerification,
  openerOf,
  type PullCredential,
  repositoryOf,
  type VerificationPolicy,
  withOpener,
} from './image-access.ts';

export interface PullRecordsOptions {
  readonly rootDirectory: string;
  readonly policy: VerificationPolicy;
  /** `preloadedImagesVerificationAllowlist` */
  readonly allowlist?: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics?: Metrics | undefined;
}

interface PulledRecord {
  readonly lastUpdatedTime: string;
  readonly imageRef: string;
  /** By the image's name without tag and digest. */
  readonly credentialMapping: Readonly<Record<string, ImageOpeners>>;
}

const apiVersion = 'kubelet.config.k8s.io/v1beta1';

/**
 * Records on disk, as the kubelet keeps them, of which images were pulled with whose credentials; decides
 * who has to pull again.
 */
export class PullRecords {
  readonly #options: PullRecordsOptions;
  readonly #pulling: string;
  readonly #pulled: string;
  /** Pulls under way, by image. */
  readonly #running = new Map<string, number>();
  readonly #counts = { pulling: 0, pulled: 0 };
  readonly #countCheck: (result: string) => void;
  /** Changes happen one after the other: two pulls of one image must not undo each other's. */
  #changes: Promise<unknown> = Promise.resolve();

  constructor(options: PullRecordsOptions) {
    const { rootDirectory, metrics = silentMetrics } = options;
    this.#options = options;
    this.#pulling = join(rootDirectory, 'image_manager', 'pulling');
    this.#pulled = join(rootDirectory, 'image_manager', 'pulled');
    const checks = metrics.counter({
      name: 'kubelet_imagemanager_image_mustpull_checks_total',
      help: 'How often it was checked whether an image that is present must be pulled for its credentials.',
      labels: ['result'],
    });
    this.#countCheck = (result) => checks.inc({ result });
    metrics.observedGauge(
      { name: 'kubelet_imagemanager_ondisk_pullintents', help: 'Image pull intents on disk.' },
      () => [{ value: this.#counts.pulling }],
    );
    metrics.observedGauge(
      { name: 'kubelet_imagemanager_ondisk_pulledrecords', help: 'Image pulled records on disk.' },
      () => [{ value: this.#counts.pulled }],
    );
  }

  /**
   * Makes the directories and ends what a killed agent has begun: an image whose pull may have finished is
   * noted as pulled for nobody. `idOf` answers the id of an image on the node.
   */
  async recover(idOf: (image: string) => Promise<string | undefined>): Promise<void> {
    for (const directory of [this.#pulling, this.#pulled]) {
      await mkdir(directory, { recursive: true, mode: 0o700 });
    }
    for (const name of await recordNames(this.#pulling)) {
      const path = join(this.#pulling, name);
      const image = imageOfIntent(await readFileIfExists(path));
      const id = image === undefined ? undefined : await idOf(image);
      // One that cannot be read names no image: all it can do is go.
      if (image !== undefined && id !== undefined) await this.#grant(image, id, []);
      await rm(path, { force: true });
    }
    this.#counts.pulled = (await recordNames(this.#pulled)).length;
  }

  /** Whether a pod with these credentials has to pull an image although it is on the node. */
  async mustPull(
    image: string,
    id: string,
    credentials: () => Promise<readonly PullCredential[]>,
  ): Promise<boolean> {
    const { policy, allowlist = [] } = this.#options;
    try {
      const record = await this.#record(id);
      const pulledByAgent = record !== undefined || (await this.#isIntended(image));
      if (!needsVerification(image, pulledByAgent, { policy, allowlist })) {
        this.#countCheck('credentialPolicyAllowed');
        return false;
      }
      const openers = record?.credentialMapping[repositoryOf(image)];
      const opener = openers && openerOf(openers, openers.nodePodsAccessible ? [] : await credentials());
      this.#countCheck(opener ? 'credentialRecordFound' : 'mustAuthenticate');
      if (opener === undefined) return true;
      if (opener !== 'everybody') await this.#grant(image, id, [opener]);
      return false;
    } catch (error) {
      this.#countCheck('error');
      this.#options.logger.error('Who may use an image cannot be told; it is pulled', error, { image });
      return true;
    }
  }

  /** A pull begins. Rejects when that cannot be noted; then it must not begin. */
  async began(image: string): Promise<void> {
    const running = (this.#running.get(image) ?? 0) + 1;
    this.#running.set(image, running);
    this.#counts.pulling = this.#running.size;
    try {
      await this.#change(() =>
        writeFileAtomically(
          join(this.#pulling, fileName(image)),
          JSON.stringify({ kind: 'ImagePullIntent', apiVersion, image }),
          { mode: 0o600 },
        ),
      );
    } catch (error) {
      this.#left(image);
      throw error;
    }
  }

  /** A pull has brought image `id`, with a credential or without. Never rejects: the image is there. */
  async succeeded(image: string, id: string, credential: PullCredential | undefined): Promise<void> {
    try {
      await this.#grant(image, id, [credential]);
      await this.#forgetIntent(image);
    } catch (error) {
      // The intent stays: nobody takes the image for one that was there before.
      this.#left(image);
      this.#options.logger.error('A pull could not be noted; the next pod will pull again', error, { image });
    }
  }

  /**
   * A pull has failed. With `mayHaveCome` the image may be there all the same, as after a call that was given
   * up: then its note stays until a pull succeeds or the agent starts anew. Never rejects.
   */
  async failed(image: string, mayHaveCome: boolean): Promise<void> {
    if (mayHaveCome) {
      this.#left(image);
      return;
    }
    await this.#forgetIntent(image).catch((error: unknown) => {
      this.#options.logger.error('The note of a failed pull could not be removed', error, { image });
    });
  }

  /** Forgets images that are no longer on the node. `ids` are those seen at `seenAt` (epoch milliseconds). */
  async prune(ids: ReadonlySet<string>, seenAt: number): Promise<void> {
    const keep = new Set([...ids].map(fileName));
    for (const name of await recordNames(this.#pulled)) {
      if (keep.has(name)) continue;
      const path = join(this.#pulled, name);
      await this.#change(async () => {
        const record = recordOf(await readFileIfExists(path));
        // It may have been pulled since.
        if (record && Date.parse(record.lastUpdatedTime) >= seenAt) return;
        await rm(path, { force: true });
      });
    }
    this.#counts.pulled = (await recordNames(this.#pulled)).length;
  }

  async #record(id: string): Promise<PulledRecord | undefined> {
    const text = await readFileIfExists(join(this.#pulled, fileName(id)));
    if (text === undefined) return undefined;
    return recordOf(text) ?? { lastUpdatedTime: '', imageRef: id, credentialMapping: {} };
  }

  async #isIntended(image: string): Promise<boolean> {
    return (await readFileIfExists(join(this.#pulling, fileName(image)))) !== undefined;
  }

  #grant(image: string, id: string, credentials: readonly (PullCredential | undefined)[]): Promise<void> {
    return this.#change(async () => {
      const before = await this.#record(id);
      const name = repositoryOf(image);
      const openers = before?.credentialMapping[name];
      const after = credentials.reduce(withOpener, openers ?? {});
      if (before && openers === after) return;
      const record = {
        kind: 'ImagePulledRecord',
        apiVersion,
        lastUpdatedTime: new Date(this.#options.clock.now()).toISOString(),
        imageRef: id,
        credentialMapping: { ...before?.credentialMapping, [name]: after },
      };
      await writeFileAtomically(join(this.#pulled, fileName(id)), JSON.stringify(record), { mode: 0o600 });
      if (!before) this.#counts.pulled++;
    });
  }

  async #forgetIntent(image: string): Promise<void> {
    if (this.#left(image) > 0) return;
    await this.#change(async () => {
      if (!this.#running.has(image)) await rm(join(this.#pulling, fileName(image)), { force: true });
    });
  }

  #left(image: string): number {
    const running = (this.#running.get(image) ?? 1) - 1;
    if (running > 0) this.#running.set(image, running);
    else this.#running.delete(image);
    this.#counts.pulling = this.#running.size;
    return running;
  }

  #change<T>(work: () => Promise<T>): Promise<T> {
    const change = this.#changes.then(work);
    this.#changes = change.catch(() => {});
    return change;
  }
}

function fileName(subject: string): string {
  return `sha256-${createHash('sha256').update(subject).digest('hex')}`;
}

async function recordNames(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory)).filter((name) => /^sha256-[0-9a-f]{64}$/.test(name));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

function imageOfIntent(text: string | undefined): string | undefined {
  const document = objectOf(text);
  const image = document?.['image'];
  return document?.['kind'] === 'ImagePullIntent' && typeof image === 'string' ? image : undefined;
}

/** Undefined for what is no record. */
function recordOf(text: string | undefined): PulledRecord | undefined {
  const document = objectOf(text);
  if (document?.['kind'] !== 'ImagePulledRecord') return undefined;
  const { lastUpdatedTime, imageRef, credentialMapping: mapping = {} } = document;
  if (typeof lastUpdatedTime !== 'string' || typeof imageRef !== 'string') return undefined;
  if (!isObject(mapping) || !Object.values(mapping).every(isOpeners)) return undefined;
  return { lastUpdatedTime, imageRef, credentialMapping: mapping as Record<string, ImageOpeners> };
}

function isOpeners(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { kubernetesSecrets = [], kubernetesServiceAccounts = [], nodePodsAccessible = false } = value;
  return (
    typeof nodePodsAccessible === 'boolean' &&
    [kubernetesSecrets, kubernetesServiceAccounts].every(
      (list) => Array.isArray(list) && list.every(isObject),
    )
  );
}

function objectOf(text: string | undefined): Record<string, unknown> | undefined {
  if (text === undefined) return undefined;
  try {
    const document: unknown = JSON.parse(text);
    return isObject(document) ? document : undefined;
  } catch {
    return undefined;
  }
}
