/**
 * Sees to it that the image of a container is on the node: looks, pulls by policy, backs off.
 *
 * Pods that want the same image with the same credentials share one pull. Expected failures are answered,
 * with the waiting reason and the text Kubernetes shows for them; only an aborted signal rejects.
 */
import type { Clock } from '../../concurrency/clock.ts';
import { Limiter } from '../../concurrency/limiter.ts';
import { formatDuration } from '../../kubernetes/duration.ts';
import { stableJson } from '../../kubernetes/hash.ts';
import { applyDefaultTag, ImageReferenceError } from '../../kubernetes/image-reference.ts';
import { type Metrics, silentMetrics } from '../../telemetry/metrics.ts';
import { Backoff } from '../backoff.ts';
import type { ContainerRuntime } from '../container-runtime.ts';
import type { AuthConfig, Image, ImageSpec, PodSandboxConfig } from '../generated/cri.ts';
import { RuntimeCallError } from '../runtime-call-error.ts';
import { pullDurationMetric } from './pull-duration-metric.ts';
import { SharedCalls } from './shared-calls.ts';

/** The part of a runtime that keeps images. */
export type ImageService = Pick<ContainerRuntime, 'imageStatus' | 'pullImage'>;

export interface ImagePullerOptions {
  readonly images: ImageService;
  readonly clock: Clock;
  /** `maxParallelImagePulls`, where it is configured. */
  readonly maxParallelImagePulls?: number | undefined;
  /**
   * `serializeImagePulls`, where somebody has configured it; then pulls go one after the other.
   * Differs from the kubelet: not its default of true, since then one slow registry holds up every pod.
   */
  readonly serializeImagePulls?: boolean | undefined;
  readonly metrics?: Metrics | undefined;
}

export interface ImageEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: 'Pulling' | 'Pulled' | 'Failed' | 'BackOff' | 'ErrImageNeverPull' | 'InspectFailed';
  readonly message: string;
}

export interface ImageRequest {
  readonly podUid: string;
  /** As the container names it. */
  readonly image: string;
  /** `Always`, `IfNotPresent` or `Never`. */
  readonly policy: string;
  readonly sandboxConfig: PodSandboxConfig | undefined;
  /** The pod's annotations; they go with the image to the runtime. */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  /** Tried in order; without any, one anonymous try is made. */
  readonly credentials?: readonly AuthConfig[] | undefined;
  /** Events of the container, as they happen. */
  readonly onEvent: (event: ImageEvent) => void;
}

/** Why a container waits for its image: the reasons Kubernetes shows. */
export type ImageFailure =
  | 'ErrImagePull'
  | 'ImagePullBackOff'
  | 'ErrImageNeverPull'
  | 'InvalidImageName'
  | 'ImageInspectError'
  | 'RegistryUnavailable'
  | 'SignatureValidationFailed';

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

interface Pulled {
  readonly imageRef: string;
  readonly image: Image | undefined;
  /** Why there is no `image`. */
  readonly problem: unknown;
  readonly durationMs: number;
}

export class ImagePuller {
  readonly #images: ImageService;
  readonly #clock: Clock;
  readonly #limiter: Limiter;
  readonly #backoff: Backoff;
  readonly #pulls = new SharedCalls<Pulled>();
  readonly #recordPull: (durationMs: number, imageBytes: number) => void;

  constructor(options: ImagePullerOptions) {
    this.#images = options.images;
    this.#clock = options.clock;
    const limit = options.serializeImagePulls ? 1 : options.maxParallelImagePulls;
    this.#limiter = new Limiter(
      limit === undefined
        ? { limit: usualParallelPulls, holdMs: usualHoldMs, clock: options.clock }
        : { limit },
    );
    this.#backoff = new Backoff(backoffRules, options.clock);
    this.#recordPull = pullDurationMetric(options.metrics ?? silentMetrics);
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

    if (policy !== 'Always') {
      let present: Image | undefined;
      try {
        present = (await this.#images.imageStatus({ image: spec, verbose: false }, { signal })).image;
      } catch (error) {
        return inspectFailure(request, error, signal);
      }
      if (present) {
        onEvent({
          type: 'Normal',
          reason: 'Pulled',
          message: `Container image ${quoted} already present on machine`,
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
      pulled = await this.#pulls.run(
        stableJson([spec.image, request.credentials ?? []]),
        (shared) => this.#limiter.run(() => this.#pull(request, spec, shared), { signal: shared }),
        signal,
      );
    } catch (error) {
      signal.throwIfAborted();
      const failure = pullFailure(image, error);
      onEvent({
        type: 'Warning',
        reason: 'Failed',
        message: `Failed to pull image ${quoted}: ${failure.message}`,
      });
      const retryAt = this.#backoff.fail(key, `${failure.reason}: ${failure.message}`);
      return { ok: false, ...failure, retryAt };
    }
    this.#backoff.forget(key);
    if (!pulled.image) return inspectFailure(request, pulled.problem, signal);
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

  async #pull(request: ImageRequest, spec: ImageSpec, signal: AbortSignal): Promise<Pulled> {
    const began = this.#clock.now();
    const credentials = request.credentials?.length ? request.credentials : [undefined];
    const errors: unknown[] = [];
    for (const auth of credentials) {
      try {
        const call = { image: spec, auth, sandboxConfig: request.sandboxConfig };
        const { imageRef } = await this.#images.pullImage(call, { signal });
        return await this.#inspectPulled(spec, imageRef, this.#clock.now() - began, signal);
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
  ): Promise<Pulled> {
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

/** Runtimes say by the beginning of their text when the registry or a signature is to blame. */
function pullFailure(image: string, error: unknown): { reason: ImageFailure; message: string } {
  const text = textOf(error);
  const causes = {
    RegistryUnavailable: 'the registry is unavailable',
    SignatureValidationFailed: 'the signature validation failed',
  };
  for (const reason of ['RegistryUnavailable', 'SignatureValidationFailed'] as const) {
    if (!text.startsWith(reason)) continue;
    const rest = text.slice(reason.length);
    return { reason, message: `image pull failed for ${image} because ${causes[reason]}${rest}` };
  }
  return { reason: 'ErrImagePull', message: text };
}

/** The runtime's own words: the call and the image are named around them already. */
function textOf(error: unknown): string {
  if (error instanceof RuntimeCallError) return error.detail;
  return error instanceof Error ? error.message : String(error);
}

/** Each different text once, in brackets when there are several. */
function combined(errors: readonly unknown[]): string {
  const texts = [...new Set(errors.map(textOf))];
  return texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
}
