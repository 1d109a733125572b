/**
 * Static pods from `staticPodURL`: a Pod or PodList fetched every `httpCheckFrequency`.
 *
 * Guarantees: whatever the server does (silence, errors, rubbish, one bad pod in a list), pods that were
 * good before go on running; only a good answer that leaves a pod out stops it. The headers, which may hold
 * secrets, are sent to the server they are meant for and to no other, and are never logged.
 *
 * Differs from the kubelet: an empty answer is an error there too, but stops all pods; here it stops none
 * (an empty PodList does). Unchanged answers are recognised by their ETag. Proxy variables of the
 * environment are not used.
 */
import { type Clock, sleep } from '../concurrency/clock.ts';
import { podFullName } from '../kubernetes/names.ts';
import type { Pod } from '../kubernetes/types.ts';
import { errorText } from '../telemetry/error-text.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { LastGood } from './last-good-manifests.ts';
import { type ManifestError, sameManifestError } from './manifest-error.ts';
import { fetchManifest, type ManifestHeaders, withoutCredentials } from './manifest-fetch.ts';
import type { DecodedManifest, DecodeManifest, PodSource, SourceUpdate } from './pod-source.ts';
import { sameStaticPod } from './static-pod.ts';

export interface UrlSourceOptions {
  /** `staticPodURL`: http or https. */
  url: string;
  /** `staticPodURLHeader`: name to values. */
  headers: ManifestHeaders;
  /** `httpCheckFrequency`, milliseconds. */
  checkFrequency: number;
  decode: DecodeManifest;
  clock: Clock;
  log: Logger;
  lastGood: LastGood;
}

export class UrlSource implements PodSource {
  readonly name = 'http';
  readonly #options: UrlSourceOptions;
  readonly #origin: string;
  readonly #log: Logger;
  #etag: string | undefined;
  #text: string | undefined;
  #pods: readonly Pod[] = [];
  #errors: readonly ManifestError[] = [];
  #complete = false;

  constructor(options: UrlSourceOptions) {
    this.#options = options;
    this.#origin = withoutCredentials(options.url);
    this.#log = options.log.with({ logger: 'sources' });
  }

  async run(listener: (update: SourceUpdate) => void, signal: AbortSignal): Promise<void> {
    const { clock, checkFrequency, lastGood } = this.#options;
    for (const origin of lastGood.origins()) {
      if (/^https?:/.test(origin) && origin !== this.#origin) lastGood.forget(origin);
    }
    for (let first = true; !signal.aborted; first = false) {
      const before = { pods: this.#pods, errors: this.#errors, complete: this.#complete };
      await this.#poll(signal);
      if (signal.aborted) return;
      if (first || this.#differsFrom(before)) {
        listener({ source: 'http', pods: this.#pods, errors: this.#errors, complete: this.#complete });
      }
      await sleep(clock, checkFrequency, signal).catch(() => {});
    }
  }

  async #poll(signal: AbortSignal): Promise<void> {
    const { url, headers, clock } = this.#options;
    try {
      const answer = await fetchManifest({ url, headers, etag: this.#etag, clock, signal });
      // "Unchanged" is an answer to an ETag, and that is forgotten after any failure: nothing to do then.
      if (answer.kind === 'text') this.#answered(answer.content, answer.etag);
      this.#log.v(4, 'Fetched static pods', { url: this.#origin, pods: this.#pods.length });
    } catch (error) {
      if (signal.aborted) return;
      this.#etag = undefined;
      this.#failed({
        source: 'http',
        origin: this.#origin,
        problems: [{ reason: errorText(error) }],
        remedy: 'Check the server, the URL and the headers (--manifest-url, --manifest-url-header)',
      });
    }
  }

  #answered(content: Uint8Array, etag: string | undefined): void {
    const text = Buffer.from(content).toString('utf8');
    this.#etag = etag;
    if (text === this.#text) return;
    const decoded = this.#options.decode(content, this.#origin);
    const [onlyError] = decoded.errors;
    // The answer as a whole is of no use: it says nothing about any pod.
    if (decoded.pods.length === 0 && onlyError !== undefined && onlyError.pod === undefined) {
      this.#text = undefined;
      return this.#failed(onlyError);
    }
    this.#text = text;
    if (decoded.errors.length > 0) this.#fallBack();
    this.#merge(decoded);
    this.#complete = true;
    if (decoded.errors.length === 0) this.#options.lastGood.keep(this.#origin, text);
  }

  /** Takes over the new pods; a pod whose new version is bad keeps its former one. */
  #merge({ pods, errors }: DecodedManifest): void {
    const former = new Map(this.#pods.map((pod) => [fullNameOf(pod), pod]));
    const named = new Set(errors.map(({ pod }) => pod && podFullName(pod.name, pod.namespace)));
    const next = new Map<string, Pod>();
    for (const pod of pods) {
      const before = former.get(fullNameOf(pod));
      next.set(fullNameOf(pod), before !== undefined && sameStaticPod(before, pod) ? before : pod);
    }
    for (const [name, pod] of former) {
      // A pod whose name cannot be read may be any of those that are missing.
      if (!next.has(name) && (named.has(name) || named.has(undefined))) next.set(name, pod);
    }
    this.#pods = [...next.values()];
    this.#errors = errors.map((error) => {
      const name = error.pod && podFullName(error.pod.name, error.pod.namespace);
      return { ...error, keepsLastGood: name !== undefined && next.has(name) };
    });
  }

  /** Nothing usable came: the pods stay, and so does what was known to be wrong with the last answer. */
  #failed(error: Omit<ManifestError, 'keepsLastGood'>): void {
    this.#text = undefined;
    this.#fallBack();
    this.#errors = [{ ...error, keepsLastGood: this.#pods.length > 0 }];
  }

  /** Before the first good answer: pods of the last one that an earlier run of the agent has seen. */
  #fallBack(): void {
    if (this.#complete || this.#pods.length > 0) return;
    const text = this.#options.lastGood.get(this.#origin);
    if (text === undefined) return;
    this.#pods = this.#options.decode(Buffer.from(text), this.#origin).pods;
    this.#log.info('Running the last good static pods of an earlier run', { url: this.#origin });
  }

  #differsFrom(before: Pick<SourceUpdate, 'pods' | 'errors' | 'complete'>): boolean {
    return (
      before.complete !== this.#complete ||
      before.pods.length !== this.#pods.length ||
      before.errors.length !== this.#errors.length ||
      before.pods.some((pod, index) => pod !== this.#pods[index]) ||
      before.errors.some((error, index) => !sameManifestError(error, this.#errors[index]))
    );
  }
}

function fullNameOf({ metadata }: Pod): string {
  return podFullName(metadata.name, metadata.namespace);
}
