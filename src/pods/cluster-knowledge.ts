/** What pods are told of the cluster around them: declared here, known where there is an API server. */
import type { EnvironmentSources } from '../kubernetes/environment.ts';
import type { Container, EphemeralContainer, Pod } from '../kubernetes/types.ts';

export interface ClusterKnowledge {
  /** Config maps, secrets and env files for exactly this container. Rejects with `EnvironmentError`. */
  environment(request: EnvironmentRequest, signal: AbortSignal): Promise<EnvironmentSources>;
  /** Variables that tell of services. Rejects with `NotSyncedError` while the services are not known. */
  serviceVariables(pod: Pod, signal: AbortSignal): Promise<ReadonlyMap<string, string>>;
  /** The runtime's handler for the pod's RuntimeClass; the empty text for the default. Ends in bounded time. */
  runtimeHandler(pod: Pod): Promise<string>;
}

export interface EnvironmentRequest {
  readonly pod: Pod;
  readonly container: Container | EphemeralContainer;
  /** The text of a file in a volume of the pod; `undefined` when there is none. */
  readonly readFile: (volume: string, path: string, signal: AbortSignal) => Promise<string | undefined>;
}
