/** What pods learn of config maps, secrets, services, runtime classes and service accounts of the cluster. */
import type { PullSecret } from '../../credentials/pull-secrets.ts';
import type { EnvironmentSources } from '../../kubernetes/environment.ts';
import type { Pod } from '../../kubernetes/types.ts';
import { ApiObjects, type ApiObjectsOptions } from '../../objects/api-objects.ts';
import { environmentObjects } from '../../objects/environment-objects.ts';
import {
  missingPullSecretsMessage,
  missingPullSecretsReason,
  pullSecrets,
} from '../../objects/pull-secrets.ts';
import type { EnvironmentRequest } from '../../pods/cluster-knowledge.ts';
import { type EventRecorder, podEventObject } from '../../telemetry/events.ts';
import type { VolumeContents } from '../../volumes/volume-contents.ts';
import type { ObjectMembership } from './membership.ts';

export interface ClusterObjectsOptions extends ApiObjectsOptions {
  readonly events: EventRecorder;
  /** Projected volumes may show cluster trust bundles (gate `ClusterTrustBundleProjection`). */
  readonly trustBundles: boolean;
}

export class ClusterObjects implements ObjectMembership {
  readonly #objects: ApiObjects;
  readonly #options: ClusterObjectsOptions;
  readonly #ending = new AbortController();

  constructor(options: ClusterObjectsOptions) {
    this.#options = options;
    this.#objects = new ApiObjects(options);
  }

  get volumeContents(): VolumeContents {
    const objects = this.#objects;
    return {
      configMap: (namespace, name, signal) => objects.configMap(namespace, name, signal),
      secret: (namespace, name, signal) => objects.secret(namespace, name, signal),
      serviceAccountToken: (wish, signal) => objects.serviceAccountToken(wish, signal),
      ...(this.#options.trustBundles && {
        trustedCertificates: (wish, signal) => objects.trustedCertificates(wish, signal),
      }),
      ...(this.#options.certificates && {
        podCertificate: (wish, signal) => objects.podCertificate(wish, signal),
      }),
    };
  }

  get serviceAccounts(): ObjectMembership['serviceAccounts'] {
    return this.#objects.accounts;
  }

  start(): void {
    this.#objects.start();
  }

  close(): void {
    this.#ending.abort(new Error('the agent stops'));
    this.#objects.close();
  }

  register(pod: Pod): void {
    this.#objects.register(pod);
  }

  unregister(podUid: string): void {
    this.#objects.unregister(podUid);
  }

  environment(request: EnvironmentRequest, signal: AbortSignal): Promise<EnvironmentSources> {
    return environmentObjects({ ...request, objects: this.#objects.referenced }, signal);
  }

  serviceVariables(pod: Pod, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
    return this.#objects.services.variables(pod, signal);
  }

  runtimeHandler(pod: Pod): Promise<string> {
    return this.#objects.runtimeClasses.handler(pod, this.#ending.signal);
  }

  async pullSecrets(pod: Pod, signal: AbortSignal): Promise<readonly PullSecret[]> {
    const { events, logger } = this.#options;
    const objects = this.#objects.referenced;
    const { secrets, missing } = await pullSecrets(pod, { objects, logger }, signal);
    if (missing.length > 0) {
      const message = missingPullSecretsMessage(missing);
      events.event(podEventObject(pod), 'Warning', missingPullSecretsReason, message);
    }
    return secrets;
  }
}
