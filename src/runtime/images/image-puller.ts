/**
 * Sees to it that the image of a container is on the node: looks, pulls by policy, backs off.
 *
 * Expected failures are answered, with the waiting reason and the text Kubernetes shows for them; only an
 * aborted signal rejects.
 */
import type { Clock } from '../../concurrency/clock.ts';
import { formatDuration } from '../../kubernetes/duration.ts';
import { applyDefaultTag, ImageReferenceError } from '../../kubernetes/image-reference.ts';
import { silentMetrics } from '../../telemetry/metrics.ts';
import { Backoff } from '../backoff.ts';
import type { Image, ImageSpec, PodSandboxConfig } from '../generated/cri.ts';
import type { PullCredential } from './image-access.ts';
import {
  type ImageAccess,
  ImagePulls,
  type ImagePullsOptions,
  type ImageService,
  type Pulled,
} from './image-pulls.ts';
import { type ImageFailure, pullFailure, textOf } from './pull-failure.ts';
import type { ProgressListener } from './pull-progress.ts';

export interface ImagePullerOptions extends ImagePullsOptions {
  /** Told the id of an image that a container is about to be made from, so that nobody removes it now. */
  readonly onUse?: ((imageId: string) => void) | undefined;
}

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

const backoffRules = { initialMs: 10_000, maxMs: 300_000 };
/**
 * A request that is made again this soon after a failed pull is told of the back-off: people and tools
 * look for `ImagePullBackOff`, while the failure itself stays visible for a moment.
 */
const showFailureMs = 1000;

/** What a metric's label says. */
type Answer = 'true' | 'false' | 'unknown';

const noCredentials = async (): Promise<readonly PullCredential[]> => [];

/** Sees to it that an image is on the node and may be used by the pod: pull policy, credentials, back-off. */
export class ImagePuller {
  readonly #images: ImageService;
  readonly #clock: Clock;
  readonly #pulls: ImagePulls;
  readonly #backoff: Backoff;
  readonly #access: ImageAccess | undefined;
  readonly #onUse: (imageId: string) => void;
  readonly #countRequest: (request: ImageRequest, present: Answer, pullRequired: Answer) => void;

  constructor(options: ImagePullerOptions) {
    this.#images = options.images;
    this.#clock = options.clock;
    this.#pulls = new ImagePulls(options);
    this.#backoff = new Backoff(backoffRules, options.clock);
    const { metrics = silentMetrics } = options;
    this.#access = options.access;
    this.#onUse = options.onUse ?? (() => {});
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
      pulled = await this.#pulls.pull({ ...request, spec, credentials }, signal);
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
