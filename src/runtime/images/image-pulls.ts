/**
 * Pulls images from their registries: some at a time, at a rate, with a note on disk of whose credentials
 * opened which.
 *
 * Guarantees: who wants the same image with the same credentials shares one pull; it goes on as long as one
 * of them waits for it.
 */
import { type Clock, sleep } from '../../concurrency/clock.ts';
import { Limiter } from '../../concurrency/limiter.ts';
import { TokenBucket } from '../../concurrency/token-bucket.ts';
import { stableJson } from '../../kubernetes/hash.ts';
import { type Logger, silentLogger } from '../../telemetry/logger.ts';
import { type Metrics, silentMetrics } from '../../telemetry/metrics.ts';
import type { ContainerRuntime } from '../container-runtime.ts';
import type { Image, ImageSpec, PodSandboxConfig } from '../generated/cri.ts';
import type { PullCredential } from './image-access.ts';
import { pullDurationMetric } from './pull-duration-metric.ts';
import { combined, isUnknown, textOf } from './pull-failure.ts';
import { type DownloadSource, type ProgressListener, PullProgressReports } from './pull-progress.ts';
import type { PullRecords } from './pull-records.ts';
import { SharedCalls } from './shared-calls.ts';

/** The part of a runtime that keeps images. */
export type ImageService = Pick<ContainerRuntime, 'imageStatus' | 'pullImage'>;

/** The record of what was pulled with whose credentials. */
export type ImageAccess = Pick<PullRecords, 'mustPull' | 'began' | 'succeeded' | 'failed'>;

export interface ImagePullsOptions {
  readonly images: ImageService;
  readonly clock: Clock;
  /**
   * `maxParallelImagePulls`, where it is configured; 1 where `serializeImagePulls` is.
   * Differs from the kubelet: not one by one unless somebody wants it, since then one slow registry holds up
   * every pod.
   */
  readonly maxParallelImagePulls?: number | undefined;
  /**
   * `registryPullQPS` and `registryBurst`; without it pulls start as they come.
   * Differs from the kubelet: a pull above the rate waits for its turn there, a fraction of a second as a
   * rule, instead of failing with a back-off of ten seconds.
   */
  readonly rate?: { readonly perSecond: number; readonly burst: number } | undefined;
  /** Who may use what is on the node; absent with the gate `KubeletEnsureSecretPulledImages` off. */
  readonly access?: ImageAccess | undefined;
  /** Tells how many bytes have come; absent where the runtime cannot. */
  readonly downloads?: DownloadSource | undefined;
  readonly logger?: Logger | undefined;
  readonly metrics?: Metrics | undefined;
}

/** What is to be pulled, and with what. */
export interface PullRequest {
  readonly spec: ImageSpec;
  readonly sandboxConfig: PodSandboxConfig | undefined;
  /** Tried in order; without any, one anonymous try is made. */
  readonly credentials: readonly PullCredential[];
  readonly onProgress?: ProgressListener | undefined;
}

/** An image that has come. */
export interface Pulled {
  readonly imageRef: string;
  readonly image: Image | undefined;
  /** Why there is no `image`. */
  readonly problem: unknown;
  readonly durationMs: number;
  /** The credential that opened it; undefined when none was needed. */
  readonly credential: PullCredential | undefined;
}

/** Pulls wait for each other above this many, unless they are slow. */
const usualParallelPulls = 8;
/** A pull that takes longer no longer counts, so that slow registries cannot hold up all others. */
const usualHoldMs = 60_000;

/** The pulls that are under way, and those that wait for their turn. */
export class ImagePulls {
  readonly #images: ImageService;
  readonly #clock: Clock;
  readonly #limiter: Limiter;
  readonly #rate: TokenBucket | undefined;
  readonly #shared = new SharedCalls<Pulled>();
  readonly #access: ImageAccess | undefined;
  readonly #reports: PullProgressReports;
  readonly #recordPull: (durationMs: number, imageBytes: number) => void;

  constructor(options: ImagePullsOptions) {
    const { clock, downloads, logger = silentLogger, metrics = silentMetrics } = options;
    this.#images = options.images;
    this.#clock = clock;
    this.#access = options.access;
    const { maxParallelImagePulls: limit } = options;
    this.#limiter = new Limiter(
      limit === undefined ? { limit: usualParallelPulls, holdMs: usualHoldMs, clock } : { limit },
    );
    this.#rate =
      options.rate &&
      new TokenBucket({
        // Without a place for a single token nothing would ever be pulled.
        capacity: Math.max(options.rate.burst, 1),
        perSecond: options.rate.perSecond,
        now: clock.now(),
      });
    this.#reports = new PullProgressReports({ clock, logger, source: downloads });
    this.#recordPull = pullDurationMetric(metrics);
  }

  /** Rejects with what the runtime says, or with the reason of `signal`. */
  async pull(request: PullRequest, signal: AbortSignal): Promise<Pulled> {
    const { spec, credentials, onProgress } = request;
    // By what they are, not whose they are: the same credential opens the same door.
    const key = stableJson([spec.image, credentials.map(({ hash }) => hash)]);
    const stopListening = onProgress && this.#reports.listen(key, onProgress);
    const start = (shared: AbortSignal) =>
      this.#limiter.run(
        async () => {
          await this.#turn(shared);
          return await this.#reports.during(key, spec.image, () => this.#recordedPull(request, shared));
        },
        { signal: shared },
      );
    try {
      return await this.#shared.run(key, start, signal);
    } finally {
      stopListening?.();
    }
  }

  /** Waits until the rate lets another pull start. */
  async #turn(signal: AbortSignal): Promise<void> {
    while (this.#rate && !this.#rate.take(this.#clock.now())) {
      await sleep(this.#clock, this.#rate.wait(this.#clock.now()), signal);
    }
  }

  /** A pull with its note on disk: made before it, replaced by the record after it. */
  async #recordedPull(request: PullRequest, signal: AbortSignal): Promise<Pulled> {
    const { image } = request.spec;
    try {
      await this.#access?.began(image);
    } catch (cause) {
      const quoted = JSON.stringify(request.spec.userSpecifiedImage);
      const message = `Failed to record image pull intent for container image ${quoted}: ${textOf(cause)}`;
      throw new Error(message, { cause });
    }
    try {
      const pulled = await this.#pull(request, signal);
      await this.#access?.succeeded(image, pulled.image?.id ?? pulled.imageRef, pulled.credential);
      return pulled;
    } catch (error) {
      await this.#access?.failed(image, signal.aborted || isUnknown(error));
      throw error;
    }
  }

  async #pull({ spec, credentials, sandboxConfig }: PullRequest, signal: AbortSignal): Promise<Pulled> {
    const began = this.#clock.now();
    const errors: unknown[] = [];
    for (const credential of credentials.length > 0 ? credentials : [undefined]) {
      try {
        const call = { image: spec, auth: credential?.credential, sandboxConfig };
        const { imageRef } = await this.#images.pullImage(call, { signal });
        const inspected = await this.#inspectPulled(spec, imageRef, this.#clock.now() - began, signal);
        return { ...inspected, credential };
      } catch (error) {
        signal.throwIfAborted();
        errors.push(error);
      }
    }
    throw errors.length === 1 ? errors[0] : new AggregateError(errors, combined(errors));
  }

  /** Size and user of an image that has just come; what cannot be told is no failure of the pull. */
  async #inspectPulled(
    spec: ImageSpec,
    imageRef: string,
    durationMs: number,
    signal: AbortSignal,
  ): Promise<Omit<Pulled, 'credential'>> {
    const asked = { ...spec, image: imageRef || spec.image };
    let image: Image | undefined;
    let problem: unknown = new Error('the runtime does not know the image it has just pulled');
    try {
      image = (await this.#images.imageStatus({ image: asked, verbose: false }, { signal })).image;
    } catch (error) {
      signal.throwIfAborted();
      problem = error;
    }
    this.#recordPull(durationMs, Number(image?.size ?? 0n));
    return { imageRef: imageRef || (image?.id ?? ''), image, problem, durationMs };
  }
}
