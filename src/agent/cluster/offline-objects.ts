/**
 * What pods learn of the cluster, with copies for the time it does not answer (`--restore-pods-offline`).
 * A pod that was given a copy has its files looked at again now and then until the API server has answered.
 */
import type { Clock } from '../../concurrency/clock.ts';
import type { EnvironmentSources } from '../../kubernetes/environment.ts';
import type { Pod } from '../../kubernetes/types.ts';
import { NotSyncedError } from '../../objects/synced-objects.ts';
import type { EnvironmentRequest } from '../../pods/cluster-knowledge.ts';
import type { VolumeContents } from '../../volumes/volume-contents.ts';
import type { ObjectMembership } from './membership.ts';
import { isUnanswered, type OfflineCopies, podPrefix } from './offline-copies.ts';

/** Where answers come from, where copies are, and who is told that an answer may be there by now. */
export interface OfflineObjectsOptions {
  readonly objects: ObjectMembership & { readonly volumeContents: VolumeContents };
  readonly copies: Pick<OfflineCopies, 'recall' | 'remember' | 'forgetPod'>;
  readonly clock: Clock;
  /** The files of this pod are to be looked at again. */
  readonly onDue: (podUid: string) => void;
}

/** How long a server that has not answered before is waited for where there is a copy. */
const secondWaitMs = 100;
/** Between two looks for an answer that a copy stands in for. */
export const retryMs = 30_000;

/** Asks as always; where there is no answer, the last one stands in. */
export class OfflineObjects implements ObjectMembership {
  readonly #options: OfflineObjectsOptions;
  /** Pods that were given a copy: takes back their next look. */
  readonly #served = new Map<string, () => void>();
  #isAway = false;

  constructor(options: OfflineObjectsOptions) {
    this.#options = options;
  }

  get serviceAccounts(): ObjectMembership['serviceAccounts'] {
    return this.#options.objects.serviceAccounts;
  }

  get volumeContents(): VolumeContents {
    const { volumeContents } = this.#options.objects;
    return {
      // Copies of these are kept where they are followed.
      configMap: (namespace, name, signal) => volumeContents.configMap(namespace, name, signal),
      secret: (namespace, name, signal) => volumeContents.secret(namespace, name, signal),
      serviceAccountToken: (wish, signal) => {
        const key = `${podPrefix(wish.pod.metadata.uid)}token/${wish.audience ?? ''}`;
        return this.#answer(wish.pod, key, signal, (within) =>
          volumeContents.serviceAccountToken(wish, within),
        );
      },
      ...(volumeContents.trustedCertificates && {
        trustedCertificates: async (wish, signal) => {
          const { pod, name = '', signerName = '', labelSelector = null } = wish;
          const which = `${name}/${signerName}/${JSON.stringify(labelSelector)}`;
          const key = `${podPrefix(pod.metadata.uid)}trust/${which}`;
          const [certificates] = await this.#answer(pod, key, signal, async (within) => [
            (await volumeContents.trustedCertificates?.(wish, within)) ?? null,
          ]);
          return certificates ?? undefined;
        },
      }),
      // Keys are in memory only; what the files of the volume hold serves on by itself.
      ...(volumeContents.podCertificate && {
        podCertificate: (wish, signal) => volumeContents.podCertificate!(wish, signal),
      }),
    };
  }

  environment(request: EnvironmentRequest, signal: AbortSignal): Promise<EnvironmentSources> {
    return this.#options.objects.environment(request, signal);
  }

  async serviceVariables(pod: Pod, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
    const key = `${podPrefix(pod.metadata.uid)}services`;
    const told = await this.#answer(pod, key, signal, async (within) => [
      ...(await this.#options.objects.serviceVariables(pod, within)),
    ]);
    return new Map(told);
  }

  runtimeHandler(pod: Pod): Promise<string> {
    if (!pod.spec.runtimeClassName) return this.#options.objects.runtimeHandler(pod);
    const key = `${podPrefix(pod.metadata.uid)}runtime-handler`;
    return this.#answer(pod, key, neverAborted, () => this.#options.objects.runtimeHandler(pod));
  }

  pullSecrets(pod: Pod, signal: AbortSignal): ReturnType<ObjectMembership['pullSecrets']> {
    return this.#options.objects.pullSecrets(pod, signal);
  }

  /** The pod needs nothing any more. */
  forget(podUid: string): void {
    this.#settle(podUid);
    this.#options.copies.forgetPod(podUid);
  }

  close(): void {
    for (const uid of this.#served.keys()) this.#settle(uid);
  }

  async #answer<T>(
    pod: Pod,
    key: string,
    signal: AbortSignal,
    ask: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { copies, clock } = this.#options;
    const copy = copies.recall(key) as T | undefined;
    const patience = new AbortController();
    const onAbort = () => patience.abort(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    const cancel =
      this.#isAway && copy !== undefined
        ? clock.after(secondWaitMs, () => patience.abort(new NotSyncedError('objects')))
        : () => {};
    try {
      const told = await ask(patience.signal);
      this.#isAway = false;
      copies.remember(key, told);
      return told;
    } catch (error) {
      signal.throwIfAborted();
      if (copy === undefined || !isUnanswered(error)) throw error;
      this.#isAway = true;
      this.#lookAgain(pod.metadata.uid);
      return copy;
    } finally {
      cancel();
      signal.removeEventListener('abort', onAbort);
    }
  }

  #lookAgain(uid: string): void {
    this.#settle(uid);
    const cancel = this.#options.clock.after(retryMs, () => {
      this.#served.delete(uid);
      this.#options.onDue(uid);
    });
    this.#served.set(uid, cancel);
  }

  #settle(uid: string): void {
    this.#served.get(uid)?.();
    this.#served.delete(uid);
  }
}

const neverAborted = new AbortController().signal;
