/**
 * Image volumes of pods: their images are fetched with those of the containers that mount them, by the same
 * rules, and a container whose volume has no image waits with the reason of that image. Containers of the pod
 * that do not mount it do not wait.
 */
import type { ContainerPlace } from '../kubernetes/init-containers.ts';
import type { Pod, Volume } from '../kubernetes/types.ts';
import type { PodSandboxConfig } from '../runtime/generated/cri.ts';
import type { ImageOutcome, ImagePuller, ImageRequest } from '../runtime/images/image-puller.ts';
import { ContainerConfigError } from '../runtime/translation/container-config-error.ts';
import { type EventRecorder, podEventObject } from '../telemetry/events.ts';

export interface ImageVolumesOptions {
  readonly images: Pick<ImagePuller, 'ensure'>;
  /** Why the runtime cannot mount images as volumes, and what can be done; absent when it can. */
  readonly imageVolumesMissing?: (() => string | undefined) | undefined;
  /** Credentials of the node and of the pod for an image. */
  readonly credentialsFor: (
    image: string,
    pod: Pod,
    signal: AbortSignal,
  ) => ReturnType<NonNullable<ImageRequest['credentials']>>;
  readonly events: EventRecorder;
}

export class ImageVolumes {
  readonly #options: ImageVolumesOptions;
  /** By pod and volume: what the runtime knows the image by. */
  readonly #references = new Map<string, Map<string, string>>();

  constructor(options: ImageVolumesOptions) {
    this.#options = options;
  }

  /** Answers the failure that keeps the container from being made; `undefined` when all images are there. */
  async ensure(request: {
    readonly pod: Pod;
    readonly place: ContainerPlace;
    readonly sandboxConfig: PodSandboxConfig | undefined;
    readonly signal: AbortSignal;
  }): Promise<(ImageOutcome & { ok: false }) | undefined> {
    // What cannot be mounted need not be fetched; making the container tells why.
    if (this.#options.imageVolumesMissing?.() !== undefined) return undefined;
    const { pod, place } = request;
    const mounted = new Set((place.container.volumeMounts ?? []).map(({ name }) => name));
    const volumes = (pod.spec.volumes ?? []).filter(({ name, image }) => image && mounted.has(name));
    const outcomes = await Promise.all(volumes.map((volume) => this.#ensure(volume, request)));
    const failure = outcomes.findLast((outcome) => !outcome.ok);
    if (!failure || failure.ok) return undefined;
    this.#options.events.event(
      podEventObject(pod, place.fieldPath),
      'Warning',
      'Failed',
      `Error: ${failure.message}`,
    );
    return failure;
  }

  async #ensure(
    { name, image }: Volume,
    {
      pod,
      sandboxConfig,
      signal,
    }: { pod: Pod; sandboxConfig: PodSandboxConfig | undefined; signal: AbortSignal },
  ): Promise<ImageOutcome> {
    const { images, credentialsFor, events } = this.#options;
    const { uid, annotations } = pod.metadata;
    const reference = image?.reference ?? '';
    const outcome = await images.ensure(
      {
        podUid: uid,
        image: reference,
        policy: image?.pullPolicy ?? 'IfNotPresent',
        credentials: () => credentialsFor(reference, pod, signal),
        sandboxConfig,
        annotations,
        // Of the pod, not of a container: the volume belongs to all of them.
        onEvent: ({ type, reason, message }) => events.event(podEventObject(pod), type, reason, message),
      },
      signal,
    );
    if (outcome.ok) {
      const known = this.#references.get(uid) ?? new Map<string, string>();
      this.#references.set(uid, known.set(name, outcome.imageRef));
    }
    return outcome;
  }

  /** What the runtime is to mount. Throws {@link ContainerConfigError} where it cannot. */
  reference(podUid: string, volume: string): string {
    const missing = this.#options.imageVolumesMissing?.();
    if (missing !== undefined) {
      throw new ContainerConfigError(`volume "${volume}" is an image volume: ${missing}`);
    }
    const reference = this.#references.get(podUid)?.get(volume);
    if (reference === undefined) {
      throw new ContainerConfigError(`the image of volume "${volume}" has not been fetched`);
    }
    return reference;
  }

  forget(podUid: string): void {
    this.#references.delete(podUid);
  }
}

/** The references of all images that these pods have as volumes. */
export function volumeImages(pods: readonly Pod[]): string[] {
  return pods.flatMap(({ spec }) =>
    (spec.volumes ?? []).flatMap(({ image }) => (image?.reference ? [image.reference] : [])),
  );
}
