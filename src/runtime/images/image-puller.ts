/**
 * Sees to it that the image of a container is on the node: looks, pulls by policy, backs off.
 *
 * Pods that want the same image with the same credentials share one pull. Expected failures are answered,
 * with the waiting reason and the text Kubernetes shows for them; only an aborted signal rejects.
 */
import { type Clock, sleep } from '../../concurrency/clock.ts';
import { Limiter } from '../../concurrency/limiter.ts';
import { TokenBucket } from '../../concurrency/token-bucket.ts';
import { formatDuration } from '../../kubernetes/duration.ts';
import { stableJson } from '../../kubernetes/hash.ts';
import { applyDefaultTag, ImageReferenceError } from '../../kubernetes/image-reference.ts';
import { type Logger, silentLogger } from '../../telemetry/logger.ts';
import { type Metrics, silentMetrics } from '../../telemetry/metrics.ts';
import { Backoff } from '../backoff.ts';
import type { ContainerRuntime } from '../container-runtime.ts';
import type { Image, ImageSpec, PodSandboxConfig } from '../generated/cri.ts';
import type { PullCredential } from './image-access.ts';
import { pullDurationMetric } from './pull-duration-metric.ts';
import { combined, type ImageFailure, isUnknown, pullFailure, textOf } from './pull-failure.ts';
import { type DownloadSource, type ProgressListener, PullProgressReports } from './pull-progress.ts';
import type { PullRecords } from './pull-records.ts';
import { SharedCalls } from './shared-calls.ts';

/** The part of a runtime that keeps images. */
export type ImageService = Pick<ContainerRuntime, 'imageStatus' | 'pullImage'>;

export interface ImagePullerOptions {
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
  /** Told the id of an image that a container is about to be made from, so that nobody removes it now. */
  readonly onUse?: ((imageId: string) => void) | undefined;
  readonly logger?: Logger | undefined;
  readonly metrics?: Metrics | undefined;
}

/** The record of what was pulled with whose credentials. */
export type ImageAccess = Pick<PullRecords, 'mustPull' | 'began' | 'succeeded' | 'failed'>;

/** An event on the pod, with the kubelet's reasons and messages. */
export interface ImageEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: 'Pulling' | 'Pulled' | 'Failed' | 'BackOff' | 'ErrImageNeverPull' | 'InspectFailed';
  readonly message: string;
}

/** The image of one container, as the container asks for it. */
export interface ImageRequest {
  readonly podUid: string;
  /** As the container names it. */
  readonly image: string;
  /** `Always`, `IfNotPresent` or `Never`. */
  readonly policy: string;
  readonly sandboxConfig: PodSandboxConfig | undefined;
  /** The pod's annotations; they go with the image to the runtime. */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  /**
   * Credentials for the image, found only when they are needed. Tried in order; without any, one anonymous
   * try is made.
   */
  readonly credentials?: (() => Promise<readonly PullCredential[]>) | undefined;
  /** Events of the container, as they happen. */
  readonly onEvent: (event: ImageEvent) => void;
  /** How far the pull is, about once a second while it runs; see `progressMessage`. */
  readonly onProgress?: ProgressListener | undefined;
}

/** Whether the container can be made; if not, `reason` and `message` are those of its waiting state. */
export type ImageOutcome =
  | {
      readonly ok: true;
      /** What the runtime takes to make a container from. */
      readonly imageRef: string;
      /** The user the image is made for. */
      readonly user: { readonly uid: bigint | undefined; readonly username: string };
      /** False when the image was there. */
      readonly pulled: boolean;
      /** How long the pull took, waiting included; 0 without one. */
      readonly durationMs: number;
    }
  | {
      readonly ok: false;
      readonly reason: ImageFailure;
      readonly message: string;
      /** When trying again makes sense, epoch milliseconds; absent when only the next sync can tell. */
      readonly retryAt?: number;
    };

/** Pulls wait for each other above this many, unless they are slow. */
const usualParallelPulls = 8;
/** A pull that takes longer no longer counts, so that slow registries cannot hold up all others. */
const usualHoldMs = 60_000;
const backoffRules = { initialMs: 10_000, maxMs: 300_000 };
/**
 * A request that is made again this soon after a failed pull is told of the back-off: people and tools
 * look for `ImagePullBackOff`, while the failure itself stays visible for a moment.
 */
const showFailureMs = 1000;

/** What a metric's label says. */
type Answer = 'true' | 'false' | 'unknown';

interface Pulled {
  readonly imageRef: string;
  readonly image: Image | undefined;
  /** Why there is no `image`. */
  readonly problem: unknown;
  readonly durationMs: number;
  /** The credential that opened it; undefined when none was needed. */
  readonly credential: PullCredential | undefined;
}

interface Pull extends Omit<ImageRequest, 'credentials'> {
  readonly spec: ImageSpec;
  readonly credentials: readonly PullCredential[];
  /** Equal for requests that share one pull. */
  readonly key: string;
}

const noCredentials = async (): Promise<readonly PullCredential[]> => [];

/**
 * Sees to it that an image is on the node and may be used by the pod: pull policy, credentials, back-off,
 * one pull for all who want the same.
 */
export class ImagePuller {
  readonly #images: ImageService;
  readonly #clock: Clock;
  readonly #limiter: Limiter;
  readonly #rate: TokenBucket | undefined;
  readonly #backoff: Backoff;
  readonly #pulls = new SharedCalls<Pulled>();
  readonly #recordPull: (durationMs: number, imageBytes: number) => void;
  readonly #access: ImageAccess | undefined;
  readonly #onUse: (imageId: string) => void;
  readonly #reports: PullProgressReports;
  readonly #countRequest: (request: ImageRequest, present: Answer, pullRequired: Answer) => void;

  constructor(options: ImagePullerOptions) {
    this.#images = options.images;
    this.#clock = options.clock;
    const { maxParallelImagePulls: limit } = options;
    this.#limiter = new Limiter(
      limit === undefined
        ? { limit: usualParallelPulls, holdMs: usualHoldMs, clock: options.clock }
        : { limit },
    );
    this.#rate =
      options.rate &&
      new TokenBucket({
        // Without a place for a single token nothing would ever be pulled.
        capacity: Math.max(options.rate.burst, 1),
        perSecond: options.rate.perSecond,
        now: options.clock.now(),
      });
    this.#backoff = new Backoff(backoffRules, options.clock);
    const { clock, downloads, logger = silentLogger, metrics = silentMetrics } = options;
    this.#recordPull = pullDurationMetric(metrics);
    this.#access = options.access;
    this.#onUse = options.onUse ?? (() => {});
    this.#reports = new PullProgressReports({ clock, logger, source: downloads });
    const requests = metrics.counter({
      name: 'kubelet_image_manager_ensure_image_requests_total',
      help: 'Number of requests for images of containers.',
      labels: ['present_locally', 'pull_policy', 'pull_required'],
    });
    this.#countRequest = ({ policy }, present, required) =>
      requests.inc({ present_locally: present, pull_policy: policy.toLowerCase(), pull_required: required });
  }

  /** Rejects only with the reason of `signal`. */
  async ensure(request: ImageRequest, signal: AbortSignal): Promise<ImageOutcome> {
    const outcome = await this.#ensure(request, signal);
    if (!outcome.ok) {
      request.onEvent({ type: 'Warning', reason: 'Failed', message: `Error: ${outcome.reason}` });
    }
    return outcome;
  }

  async #ensure(request: ImageRequest, signal: AbortSignal): Promise<ImageOutcome> {
    const { image, policy, onEvent } = request;
    const quoted = JSON.stringify(image);
    let spec: ImageSpec;
    try {
      spec = specOf(request);
    } catch (error) {
      if (!(error instanceof ImageReferenceError)) throw error;
      const message = `Failed to apply default image tag ${quoted}: ${error.message}`;
      onEvent({ type: 'Warning', reason: 'InspectFailed', message });
      return { ok: false, reason: 'InvalidImageName', message };
    }

    if (policy === 'Always') this.#countRequest(request, 'unknown', 'true');
    else {
      let present: Image | undefined;
      try {
        present = (await this.#images.imageStatus({ image: spec, verbose: false }, { signal })).image;
      } catch (error) {
        this.#countRequest(request, 'unknown', 'unknown');
        return inspectFailure(request, error, signal);
      }
      const mustPull = !present || (await this.#mustPull(request, spec, present));
      this.#countRequest(request, present ? 'true' : 'false', mustPull ? 'true' : 'false');
      if (present && !mustPull) {
        this.#onUse(present.id);
        const access = this.#access ? ' and can be accessed by the pod' : '';
        onEvent({
          type: 'Normal',
          reason: 'Pulled',
          message: `Container image ${quoted} already present on machine${access}`,
        });
        return { ok: true, imageRef: present.id, user: userOf(present), pulled: false, durationMs: 0 };
      }
      if (policy === 'Never') {
        const message = `Container image ${quoted} is not present with pull policy of Never`;
        onEvent({ type: 'Warning', reason: 'ErrImageNeverPull', message });
        return { ok: false, reason: 'ErrImageNeverPull', message };
      }
    }
    return this.#pullUnlessBackingOff(request, spec, signal);
  }

  async #mustPull({ credentials }: ImageRequest, { image }: ImageSpec, present: Image): Promise<boolean> {
    return (await this.#access?.mustPull(image, present.id, credentials ?? noCredentials)) ?? false;
  }

  async #pullUnlessBackingOff(
    request: ImageRequest,
    spec: ImageSpec,
    signal: AbortSignal,
  ): Promise<ImageOutcome> {
    const { image, podUid, onEvent } = request;
    const quoted = JSON.stringify(image);
    const key = `${podUid}_${spec.image}`;
    this.#backoff.collect();
    const waiting = this.#backoff.waiting(key);
    if (waiting) {
      const message = `Back-off pulling image ${quoted}`;
      onEvent({ type: 'Normal', reason: 'BackOff', message });
      return {
        ok: false,
        reason: 'ImagePullBackOff',
        message: `${message}: ${waiting.cause}`,
        retryAt: waiting.until,
      };
    }

    onEvent({ type: 'Normal', reason: 'Pulling', message: `Pulling image ${quoted}` });
    const asked = this.#clock.now();
    let pulled: Pulled;
    try {
      const credentials = (await request.credentials?.()) ?? [];
      signal.throwIfAborted();
      // By what they are, not whose they are: the same credential opens the same door.
      const shared = stableJson([spec.image, credentials.map(({ hash }) => hash)]);
      pulled = await this.#sharePull({ ...request, spec, credentials, key: shared }, signal);
    } catch (error) {
      signal.throwIfAborted();
      const failure = pullFailure(image, error);
      onEvent({
        type: 'Warning',
        reason: 'Failed',
        message: `Failed to pull image ${quoted}: ${failure.message}`,
      });
      const until = this.#backoff.fail(key, `${failure.reason}: ${failure.message}`);
      return { ok: false, ...failure, retryAt: Math.min(until, this.#clock.now() + showFailureMs) };
    }
    this.#backoff.forget(key);
    if (!pulled.image) return inspectFailure(request, pulled.problem, signal);
    this.#onUse(pulled.image.id);
    const waited = this.#clock.now() - asked;
    const took = formatDuration(Math.trunc(Math.min(pulled.durationMs, waited)));
    onEvent({
      type: 'Normal',
      reason: 'Pulled',
      message:
        `Successfully pulled image ${quoted} in ${took} (${formatDuration(Math.trunc(waited))} including waiting). ` +
        `Image size: ${pulled.image.size} bytes.`,
    });
    return {
      ok: true,
      imageRef: pulled.imageRef,
      user: userOf(pulled.image),
      pulled: true,
      durationMs: waited,
    };
  }

  async #sharePull(pull: Pull, signal: AbortSignal): Promise<Pulled> {
    const { key, spec, onProgress } = pull;
    const stopListening = onProgress && this.#reports.listen(key, onProgress);
    const start = (shared: AbortSignal) =>
      this.#limiter.run(
        async () => {
          await this.#turn(shared);
          return await this.#reports.during(key, spec.image, () => this.#recordedPull(pull, shared));
        },
        { signal: shared },
      );
    try {
      return await this.#pulls.run(key, start, signal);
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
  async #recordedPull(pull: Pull, signal: AbortSignal): Promise<Pulled> {
    const { image } = pull.spec;
    try {
      await this.#access?.began(image);
    } catch (cause) {
      const quoted = JSON.stringify(pull.image);
      const message = `Failed to record image pull intent for container image ${quoted}: ${textOf(cause)}`;
      throw new Error(message, { cause });
    }
    try {
      const pulled = await this.#pull(pull, signal);
      await this.#access?.succeeded(image, pulled.image?.id ?? pulled.imageRef, pulled.credential);
      return pulled;
    } catch (error) {
      await this.#access?.failed(image, signal.aborted || isUnknown(error));
      throw error;
    }
  }

  async #pull({ spec, credentials, sandboxConfig }: Pull, signal: AbortSignal): Promise<Pulled> {
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

function specOf({ image, annotations }: ImageRequest): ImageSpec {
  return {
    image: applyDefaultTag(image),
    userSpecifiedImage: image,
    annotations: { ...annotations },
    runtimeHandler: '',
    imageRef: '',
  };
}

function userOf(image: Image): { uid: bigint | undefined; username: string } {
  return { uid: image.uid?.value, username: image.username };
}

function inspectFailure(request: ImageRequest, error: unknown, signal: AbortSignal): ImageOutcome {
  signal.throwIfAborted();
  const message = `Failed to inspect image ${JSON.stringify(request.image)}: ${textOf(error)}`;
  request.onEvent({ type: 'Warning', reason: 'InspectFailed', message });
  return { ok: false, reason: 'ImageInspectError', message };
}
