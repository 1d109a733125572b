/** The services of the cluster, for the environment of containers. */
import { isStaticPod } from '../kubernetes/pod-identity.ts';
import type { Pod } from '../kubernetes/types.ts';
import type { Service } from './object-types.ts';
import { serviceVariables } from './service-variables.ts';
import { SyncedObjects, type SyncedObjectsOptions } from './synced-objects.ts';

export class Services {
  readonly #services: SyncedObjects<Service>;

  constructor(options: SyncedObjectsOptions) {
    this.#services = new SyncedObjects({ ...options, path: '/api/v1/services', what: 'services' });
  }

  /** Begins to follow, so that the first container need not wait. */
  start(): void {
    this.#services.start();
  }

  stop(): void {
    this.#services.stop();
  }

  /**
   * The variables for the pod's containers. Rejects with `NotSyncedError` while the services are not known;
   * a static pod has to start without an API server as well, and then goes without.
   */
  async variables(pod: Pod, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
    const { namespace } = pod.metadata;
    const services = isStaticPod(pod) ? this.#services.current() : await this.#services.objects(signal);
    return serviceVariables(services?.values() ?? [], {
      namespace,
      enableServiceLinks: pod.spec.enableServiceLinks ?? true,
    });
  }
}
