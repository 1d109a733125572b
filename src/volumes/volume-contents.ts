/**
 * Where the files of volumes come from when they are not on the node: what this room asks of whoever knows
 * the API server. Answers of objects already known come at once, so hundreds of volumes that show one object
 * cost no more questions than one.
 */
import type { Pod, Volume } from '../kubernetes/types.ts';

type Projection = NonNullable<NonNullable<Volume['projected']>['sources']>[number];
type PodCertificateProjection = NonNullable<Projection['podCertificate']>;
type ClusterTrustBundleProjection = NonNullable<Projection['clusterTrustBundle']>;

/** Key to content. */
export type ObjectEntries = ReadonlyMap<string, Uint8Array>;

export interface VolumeContents {
  /** `data` and `binaryData`; `undefined` when there is no such object. Rejects when that cannot be told. */
  configMap(namespace: string, name: string, signal: AbortSignal): Promise<ObjectEntries | undefined>;
  /** As {@link configMap}. */
  secret(namespace: string, name: string, signal: AbortSignal): Promise<ObjectEntries | undefined>;
  /** A token of the pod's service account, bound to the pod and kept fresh while the pod is there. */
  serviceAccountToken(
    wish: {
      readonly pod: Pod;
      readonly audience?: string | undefined;
      readonly expirationSeconds?: number | undefined;
      /** What the file holds now; an answer may be the same. */
      readonly existing?: string | undefined;
    },
    signal: AbortSignal,
  ): Promise<string>;
  /**
   * The certificates of one cluster trust bundle, or of all of a signer that fit the labels, in PEM; `undefined`
   * when there are none such. Absent with the gate `ClusterTrustBundleProjection` off.
   */
  trustedCertificates?(
    wish: {
      readonly pod: Pod;
      readonly name?: string | undefined;
      readonly signerName?: string | undefined;
      readonly labelSelector?: NonNullable<ClusterTrustBundleProjection['labelSelector']> | undefined;
    },
    signal: AbortSignal,
  ): Promise<string | undefined>;
  /**
   * A key of the pod's own (PKCS #8) and the certificates a signer has issued for it, both PEM, kept fresh while
   * the pod is there. Absent with the gate `PodCertificateRequest` off.
   */
  podCertificate?(
    wish: {
      readonly pod: Pod;
      /** Names the source among those of the pod; the same each time. */
      readonly source: string;
      readonly projection: PodCertificateProjection;
      /** What the files of the source hold now; an answer may be the same. */
      readonly existing: string;
    },
    signal: AbortSignal,
  ): Promise<{ readonly key: string; readonly chain: string }>;
}
