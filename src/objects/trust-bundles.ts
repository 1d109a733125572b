/**
 * The certificates that parts of the cluster trust (`ClusterTrustBundle` of certificates.k8s.io/v1beta1), all
 * of them followed from the first time a pod shows one. Pods that do are told of each change.
 */
import { createHash } from 'node:crypto';
import type { V1beta1ClusterTrustBundle } from '@kubernetes/client-node';
import { matchesLabels } from '../kubernetes/label-selector.ts';
import type { LabelSelector } from '../kubernetes/pod-validation/label-rules.ts';
import type { Wire } from '../kubernetes/types.ts';
import { SyncedObjects, type SyncedObjectsOptions } from './synced-objects.ts';

type ClusterTrustBundle = Wire<V1beta1ClusterTrustBundle>;

/** One bundle by its name, or all of a signer that fit the labels; no selector fits none. */
export interface TrustBundleWish {
  readonly name?: string | undefined;
  readonly signerName?: string | undefined;
  readonly labelSelector?: LabelSelector | undefined;
}

export interface TrustBundlesOptions extends SyncedObjectsOptions {
  /** The files of these pods may have to be written again. */
  readonly onChange: (podUids: readonly string[]) => void;
}

export class TrustBundles {
  readonly #bundles: SyncedObjects<ClusterTrustBundle>;
  readonly #pods = new Set<string>();

  constructor(options: TrustBundlesOptions) {
    this.#bundles = new SyncedObjects({
      ...options,
      path: '/apis/certificates.k8s.io/v1beta1/clustertrustbundles',
      what: 'cluster trust bundles',
      onObjects: () => {
        if (this.#pods.size > 0) options.onChange([...this.#pods]);
      },
    });
  }

  /**
   * The certificates in PEM, each once; `undefined` when no bundle fits. Rejects with `NotSyncedError` while the
   * bundles are not known. The pod is told of changes until it is forgotten.
   *
   * Differs from the kubelet: in the order of their digests instead of a random one, so that certificates that
   * have not changed are a file that has not changed.
   */
  async certificates(
    podUid: string,
    { name, signerName, labelSelector }: TrustBundleWish,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    this.#pods.add(podUid);
    const bundles = await this.#bundles.objects(signal);
    const found = [...bundles.values()].filter(({ metadata, spec }) =>
      name === undefined
        ? spec.signerName === signerName && matchesLabels(labelSelector, metadata?.labels)
        : metadata?.name === name,
    );
    return found.length === 0 ? undefined : merged(found.map(({ spec }) => spec.trustBundle));
  }

  forget(podUid: string): void {
    this.#pods.delete(podUid);
  }

  stop(): void {
    this.#bundles.stop();
  }
}

const block = /-----BEGIN CERTIFICATE-----([\sA-Za-z0-9+/=]+)-----END CERTIFICATE-----/g;

/** Without comments between the certificates, headers and repetitions. */
function merged(bundles: readonly string[]): string {
  const byDigest = new Map<string, string>();
  for (const bundle of bundles) {
    for (const [, body = ''] of bundle.matchAll(block)) {
      const text = body.replaceAll(/\s/g, '');
      const digest = createHash('sha256').update(text).digest('hex');
      const lines = text.match(/.{1,64}/g) ?? [];
      const pem = ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
      byDigest.set(digest, pem);
    }
  }
  return [...byDigest]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, pem]) => pem)
    .join('');
}
