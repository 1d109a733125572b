/**
 * Removes images that nobody uses: when the disk fills up, when they are too old, and when eviction asks for
 * all of them. Looks every five minutes; when each image was used last survives restarts in a small file.
 */
import { mkdir, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Clock, sleep } from '../../concurrency/clock.ts';
import { ChecksummedFile } from '../../linux/checksummed-file.ts';
import type { EventRecorder } from '../../telemetry/events.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { type Counter, type Metrics, silentMetrics } from '../../telemetry/metrics.ts';
import type { ContainerRuntime } from '../container-runtime.ts';
import type { Image } from '../generated/cri.ts';
import {
  bytesToFree,
  collectsImages,
  type DiskSpace,
  expiredImages,
  type ImageOnNode,
  type ImageRules,
  type ImageUse,
  type ImageUses,
  noteUses,
  removableImages,
} from './image-gc.ts';

export interface ImageCollectorOptions {
  readonly runtime: Pick<
    ContainerRuntime,
    'listImages' | 'listContainers' | 'imageStatus' | 'removeImage' | 'imageFsInfo' | 'status'
  >;
  readonly rules: ImageRules;
  readonly rootDirectory: string;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly events: EventRecorder;
  readonly metrics?: Metrics | undefined;
  /** Space of the file system a directory is on; the kernel's answer by default. */
  readonly diskSpace?: (directory: string) => Promise<DiskSpace>;
  /** Images that pods mount as volumes, as the pods name them: the runtime does not tell that they are in use. */
  readonly volumeImages?: () => Iterable<string>;
  /** Told the ids of all images after each look, with the time of asking. */
  readonly onListed?: (ids: ReadonlySet<string>, askedAt: number) => Promise<void>;
}

/** Images could not be removed as the rules want it. */
export class ImageCollectionError extends Error {
  override readonly name = 'ImageCollectionError';
}

const everyMs = 5 * 60_000;
/** Differs from the kubelet: not at once, since pods and their pulls come first after a start. */
const firstMs = 60_000;

/**
 * Knows when each image was last used, and removes those that nobody uses when the disk fills or they are
 * too old.
 */
export class ImageCollector {
  readonly #options: ImageCollectorOptions;
  readonly #file: ChecksummedFile<ImageUses>;
  readonly #collected: Counter;
  #uses: ImageUses | undefined;
  /** When the agent used images itself, since the last look. */
  #touched = new Map<string, number>();
  #failures = 0;
  /** Passes run one after the other: eviction may ask for one while another is under way. */
  #passes: Promise<unknown> = Promise.resolve();

  constructor(options: ImageCollectorOptions) {
    const { rootDirectory, clock, metrics = silentMetrics } = options;
    this.#options = options;
    this.#file = new ChecksummedFile({
      path: join(rootDirectory, 'kubelet-ts', 'image-uses.json'),
      clock,
      accepts: isUses,
    });
    this.#collected = metrics.counter({
      name: 'kubelet_image_garbage_collected_total',
      help: 'Number of images removed by garbage collection, by reason.',
      labels: ['reason'],
    });
  }

  /** Collects every five minutes until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, events, logger, nodeName } = this.#options;
    for (let wait = firstMs; ; wait = everyMs) {
      await sleep(clock, wait, signal).catch(() => {});
      if (signal.aborted) return;
      try {
        await this.collect(signal);
        this.#failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        logger.error('Image garbage collection failed; trying again', error, { inMs: everyMs });
        // Once is nothing to worry people with.
        if (++this.#failures < 2) continue;
        events.event({ kind: 'Node', name: nodeName }, 'Warning', 'ImageGCFailed', (error as Error).message);
      }
    }
  }

  /** A container is about to be made from an image: it counts as used now. */
  touch(imageId: string): void {
    this.#touched.set(imageId, this.#options.clock.now());
  }

  /** One pass by the rules. Throws {@link ImageCollectionError}, or what keeps the runtime from answering. */
  collect(signal: AbortSignal): Promise<void> {
    return this.#inTurn(() => this.#collect(signal));
  }

  /** Removes every image that nobody uses, whatever the disk has left; resolves to the bytes they had. */
  freeAll(signal: AbortSignal): Promise<number> {
    return this.#inTurn(async () => {
      const { removable } = await this.#look(signal);
      const { freed, errors } = await this.#remove(removable, 'space', signal);
      if (errors.length > 0) throw failed(errors);
      return freed;
    });
  }

  async #collect(signal: AbortSignal): Promise<void> {
    const { clock, rules } = this.#options;
    const { removable, uses } = await this.#look(signal);
    if (!collectsImages(rules)) return;
    const expired = expiredImages(removable, uses, { maxAgeMs: rules.maxAgeMs, now: clock.now() });
    const byAge = await this.#remove(expired, 'age', signal);
    const left = removable.filter((image) => !expired.includes(image));
    const bySpace = rules.highPercent < 100 ? await this.#makeSpace(left, signal) : [];
    const errors = [...byAge.errors, ...bySpace];
    if (errors.length > 0) throw failed(errors);
  }

  async #makeSpace(removable: readonly ImageOnNode[], signal: AbortSignal): Promise<Error[]> {
    const { rules, logger, events, nodeName } = this.#options;
    const space = await this.#space(signal);
    const node = { kind: 'Node', name: nodeName } as const;
    if (space.capacity <= 0) {
      const message = 'invalid capacity 0 on image filesystem';
      events.event(node, 'Warning', 'InvalidDiskCapacity', message);
      throw new ImageCollectionError(message);
    }
    const wanted = bytesToFree(space, rules);
    if (wanted === 0) return [];
    logger.info('The disk fills up; removing images that nobody uses', { ...space, bytesToFree: wanted });
    const { freed, errors } = await this.#remove(removable, 'space', signal, wanted);
    if (freed < wanted) {
      const message =
        'Failed to garbage collect required amount of images. ' +
        `Attempted to free ${wanted} bytes, but only found ${freed} bytes eligible to free.`;
      events.event(node, 'Warning', 'FreeDiskSpaceFailed', message);
      errors.push(new ImageCollectionError(message));
    }
    return errors;
  }

  /** What is on the node and what of it could go. */
  async #look(
    signal: AbortSignal,
  ): Promise<{ readonly removable: readonly ImageOnNode[]; readonly uses: ImageUses }> {
    const { runtime, rules, clock, onListed } = this.#options;
    this.#uses ??= await this.#readUses();
    const askedAt = clock.now();
    // Containers after images: one that comes in between keeps its image.
    const { images: listed } = await runtime.listImages({ filter: undefined }, { signal });
    const [{ containers }, sandboxImages, volumeImages] = await Promise.all([
      runtime.listContainers({ filter: undefined }, { signal }),
      this.#sandboxImages(signal),
      this.#volumeImages(signal),
    ]);
    const images = listed.flatMap((image) => this.#onNode(image));
    const inUse = new Set(
      containers.flatMap(({ image, imageRef, imageId }) => [image?.image ?? '', imageRef, imageId]),
    );
    for (const id of volumeImages) inUse.add(id);
    inUse.delete('');
    const now = clock.now();
    this.#uses = noteUses(this.#uses, images, new Set([...inUse, ...this.#touched.keys()]), now);
    this.#touched = new Map([...this.#touched].filter(([, at]) => now - at < rules.minAgeMs));
    await this.#writeUses(this.#uses);
    await onListed?.(new Set(images.map(({ id }) => id)), askedAt);
    const needed = new Set([...inUse, ...sandboxImages]);
    const removable = removableImages(images, this.#uses, needed, { minAgeMs: rules.minAgeMs, now });
    return { removable, uses: this.#uses };
  }

  #onNode({ id, repoTags, repoDigests, size, pinned }: Image): ImageOnNode[] {
    const names = [...repoTags, ...repoDigests];
    if (id !== '') return [{ id, names, size: Number(size), pinned }];
    const { events, nodeName } = this.#options;
    const message = `ImageID is not valid, skipping, image: ${names.join(', ')}`;
    events.event({ kind: 'Node', name: nodeName }, 'Warning', 'InvalidImageID', message);
    return [];
  }

  /** Ids of the images that are mounted as volumes. */
  async #volumeImages(signal: AbortSignal): Promise<string[]> {
    const { runtime, volumeImages = () => [] } = this.#options;
    const ids = [...new Set(volumeImages())].map(async (image) => {
      const spec = { image, annotations: {}, userSpecifiedImage: image, runtimeHandler: '', imageRef: '' };
      return (await runtime.imageStatus({ image: spec, verbose: false }, { signal })).image?.id ?? '';
    });
    return await Promise.all(ids);
  }

  /** The image of sandboxes' own processes. Newer runtimes pin it; containerd before 1.7 only tells it. */
  async #sandboxImages(signal: AbortSignal): Promise<string[]> {
    const { info } = await this.#options.runtime.status({ verbose: true }, { signal });
    try {
      const { sandboxImage } = JSON.parse(info['config'] ?? '{}') as { sandboxImage?: unknown };
      return typeof sandboxImage === 'string' && sandboxImage !== '' ? [sandboxImage] : [];
    } catch {
      return [];
    }
  }

  async #space(signal: AbortSignal): Promise<DiskSpace> {
    const { runtime, diskSpace = spaceOf } = this.#options;
    const { imageFilesystems } = await runtime.imageFsInfo({}, { signal });
    const directory = imageFilesystems[0]?.fsId?.mountpoint;
    if (!directory) throw new ImageCollectionError('the runtime does not tell where it keeps images');
    return await diskSpace(directory);
  }

  /** Removes images in their order until `wanted` bytes have gone. Failures do not end it. */
  async #remove(
    images: readonly ImageOnNode[],
    reason: 'age' | 'space',
    signal: AbortSignal,
    wanted = Number.POSITIVE_INFINITY,
  ): Promise<{ freed: number; errors: Error[] }> {
    const { runtime, clock, rules, logger } = this.#options;
    const errors: Error[] = [];
    let freed = 0;
    for (const { id, names, size } of images) {
      if (freed >= wanted) break;
      signal.throwIfAborted();
      // Used since it was decided on.
      if (clock.now() - (this.#touched.get(id) ?? 0) < rules.minAgeMs) continue;
      const image = { image: id, annotations: {}, userSpecifiedImage: '', runtimeHandler: '', imageRef: '' };
      try {
        await runtime.removeImage({ image }, { signal });
      } catch (error) {
        signal.throwIfAborted();
        errors.push(error as Error);
        continue;
      }
      logger.info('Removed an image that nobody uses', { imageID: id, names, size, reason });
      this.#collected.inc({ reason });
      freed += size;
    }
    return { freed, errors };
  }

  async #readUses(): Promise<ImageUses> {
    const read = await this.#file.read();
    if (read.kind === 'read') return read.data;
    if (read.kind === 'corrupt') {
      this.#options.logger.warn('When images were used last is not known; counting from now', { ...read });
    }
    return {};
  }

  /** A failure must not keep space from being made: a full disk may be its cause. */
  async #writeUses(uses: ImageUses): Promise<void> {
    try {
      await mkdir(dirname(this.#file.path), { recursive: true, mode: 0o750 });
      await this.#file.write(uses);
    } catch (error) {
      this.#options.logger.error('When images were used last cannot be kept over a restart', error);
    }
  }

  #inTurn<T>(pass: () => Promise<T>): Promise<T> {
    const turn = this.#passes.then(pass);
    this.#passes = turn.catch(() => {});
    return turn;
  }
}

async function spaceOf(directory: string): Promise<DiskSpace> {
  const { blocks, bavail, bsize } = await statfs(directory);
  return { capacity: blocks * bsize, available: bavail * bsize };
}

function failed(errors: readonly Error[]): Error {
  const [first] = errors;
  if (errors.length === 1 && first) return first;
  return new ImageCollectionError(errors.map(({ message }) => message).join('; '), {
    cause: new AggregateError(errors),
  });
}

function isUses(data: unknown): data is ImageUses {
  const isUse = (value: unknown): value is ImageUse =>
    typeof value === 'object' &&
    value !== null &&
    typeof (value as ImageUse).firstSeen === 'number' &&
    ['number', 'undefined'].includes(typeof (value as ImageUse).lastUsed);
  return (
    typeof data === 'object' && data !== null && !Array.isArray(data) && Object.values(data).every(isUse)
  );
}
