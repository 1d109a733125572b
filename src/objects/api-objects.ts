/**
 * Everything pods need to know of other objects, over one API client: config maps and secrets, services,
 * runtime classes, service account tokens and certificates.
 */
import type { ApiClient } from '../client/api-client.ts';
import type { Clock } from '../concurrency/clock.ts';
import type { Pod } from '../kubernetes/types.ts';
import type { Logger } from '../telemetry/logger.ts';
import { configMapEntries, type Entries, secretEntries } from './object-entries.ts';
import type { CreateReflector } from './object-types.ts';
import { PodCertificates, type PodCertificatesOptions, type PodCertificateWish } from './pod-certificates.ts';
import type { PodCredential } from './pod-credential.ts';
import {
  type ChangeDetection,
  ReferencedObjects,
  type ReferencedObjectsOptions,
} from './referenced-objects.ts';
import { RuntimeClasses } from './runtime-classes.ts';
import { ServiceAccountTokens, tokenPod } from './service-account-tokens.ts';
import { ServiceAccounts } from './service-accounts.ts';
import { Services } from './services.ts';
import { TrustBundles, type TrustBundleWish } from './trust-bundles.ts';

export interface ApiObjectsOptions {
  readonly client: Pick<ApiClient, 'request'>;
  readonly createReflector: CreateReflector;
  /** `configMapAndSecretChangeDetectionStrategy`. */
  readonly strategy: ChangeDetection;
  readonly cacheTtlMs?: (() => number) | undefined;
  /** `syncFrequency`, milliseconds. */
  readonly syncMs?: number | undefined;
  readonly memory?: ReferencedObjectsOptions['memory'];
  /** The files of these pods may have to be written again, and what they waited for may be there. */
  readonly onChange: (podUids: readonly string[]) => void;
  /** Where pods get certificates from. Absent with the gate `PodCertificateRequest` off. */
  readonly certificates?:
    | Pick<PodCertificatesOptions, 'nodeName' | 'nodeUid' | 'makeKey' | 'events' | 'metrics'>
    | undefined;
  /** From 0 up to 1. */
  readonly random?: (() => number) | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class ApiObjects {
  readonly referenced: ReferencedObjects;
  readonly services: Services;
  readonly runtimeClasses: RuntimeClasses;
  readonly tokens: ServiceAccountTokens;
  readonly trustBundles: TrustBundles;
  readonly certificates: PodCertificates | undefined;
  /** For credential provider plugins, and for what pods ask of signers. */
  readonly accounts: ServiceAccounts;

  constructor(options: ApiObjectsOptions) {
    const { client, onChange, certificates, random = Math.random, clock, logger } = options;
    this.referenced = new ReferencedObjects(options);
    this.services = new Services(options);
    this.runtimeClasses = new RuntimeClasses(options);
    this.trustBundles = new TrustBundles(options);
    const onRenewed = (podUid: string) => onChange([podUid]);
    this.tokens = new ServiceAccountTokens({ client, onRenewed, random, clock, logger });
    this.accounts = new ServiceAccounts({ client, tokens: this.tokens });
    const { accounts } = this;
    this.certificates =
      certificates &&
      new PodCertificates({ ...options, ...certificates, accounts, random, onChange: onRenewed });
  }

  /** Begins with what every pod needs, so that the first one need not wait for it. */
  start(): void {
    this.services.start();
  }

  /** A pod that is to run here, or its changed version. */
  register(pod: Pod): void {
    this.referenced.register(pod);
  }

  /** Nothing is left of the pod. */
  unregister(podUid: string): void {
    this.referenced.unregister(podUid);
    this.tokens.forget(podUid);
    this.trustBundles.forget(podUid);
    this.certificates?.forget(podUid);
    this.runtimeClasses.forget(podUid);
  }

  close(): void {
    this.referenced.close();
    this.services.stop();
    this.runtimeClasses.stop();
    this.trustBundles.stop();
    this.tokens.close();
    this.certificates?.close();
  }

  /** Key to content of a config map; `undefined` when there is none. Rejects as `ReferencedObjects.get`. */
  async configMap(namespace: string, name: string, signal: AbortSignal): Promise<Entries | undefined> {
    const found = await this.referenced.get('configMap', namespace, name, signal);
    return found && configMapEntries(found);
  }

  /** As {@link configMap}. */
  async secret(namespace: string, name: string, signal: AbortSignal): Promise<Entries | undefined> {
    const found = await this.referenced.get('secret', namespace, name, signal);
    return found && secretEntries(found);
  }

  /** A token of the pod's service account. Rejects with `TokenError`. */
  async serviceAccountToken(
    wish: {
      readonly pod: Pod;
      readonly audience?: string | undefined;
      readonly expirationSeconds?: number | undefined;
      readonly existing?: string | undefined;
    },
    signal: AbortSignal,
  ): Promise<string> {
    return await this.tokens.token({ ...wish, pod: tokenPod(wish.pod), keepsFresh: true }, signal);
  }

  /** Certificates in PEM; `undefined` when no bundle fits. Rejects with `NotSyncedError`. */
  async trustedCertificates(
    wish: TrustBundleWish & { readonly pod: Pod },
    signal: AbortSignal,
  ): Promise<string | undefined> {
    return await this.trustBundles.certificates(wish.pod.metadata.uid, wish, signal);
  }

  /** A key of the pod's own and its certificates. Rejects with `PodCertificateError`. */
  async podCertificate(wish: PodCertificateWish, signal: AbortSignal): Promise<PodCredential> {
    if (!this.certificates) throw new Error('the feature gate PodCertificateRequest is off');
    return await this.certificates.credential(wish, signal);
  }
}
