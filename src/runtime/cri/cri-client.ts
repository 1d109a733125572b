/**
 * A CRI v1 runtime behind a unix socket. Every call has its limit, is counted, and fails with a
 * `RuntimeCallError`. Images may be served from a socket of their own.
 */
import type { Clock } from '../../concurrency/clock.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { callSubject } from '../call-subject.ts';
import { callTimeout, defaultRequestTimeoutMs } from '../call-timeout.ts';
import type {
  CallOptions,
  ContainerRuntime,
  RequestOf,
  ResponseOf,
  RuntimeCall,
} from '../container-runtime.ts';
import { ImageServiceDefinition, RuntimeServiceDefinition } from '../generated/cri.ts';
import { type CallMeter, callMeter } from './call-metrics.ts';
import { GrpcConnection, type GrpcMethod } from './grpc-connection.ts';

export interface CriClientOptions {
  /** `--container-runtime-endpoint`: `unix:///path` or a path. */
  readonly endpoint: string;
  /** `--image-service-endpoint`; the runtime's own endpoint when absent or empty. */
  readonly imageEndpoint?: string;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** `runtimeRequestTimeout` in milliseconds; 2 minutes by default. */
  readonly requestTimeoutMs?: number;
}

/** Connects with the first call; calls fail with `RuntimeCallError`, or with the reason of their signal. */
export class CriClient implements ContainerRuntime {
  /** The connection to the runtime itself; event streams run on it as well. */
  readonly connection: GrpcConnection;
  /** The one that images are asked for on; the same unless another endpoint is given for them. */
  readonly imageConnection: GrpcConnection;
  readonly #requestTimeoutMs: number;
  readonly #meter: CallMeter;

  /** Connects with the first call. Throws `InvalidEndpointError` for what is no unix socket. */
  constructor({ endpoint, imageEndpoint, clock, metrics, requestTimeoutMs }: CriClientOptions) {
    this.connection = new GrpcConnection({ endpoint, flag: '--container-runtime-endpoint', clock });
    this.imageConnection =
      imageEndpoint && imageEndpoint !== endpoint
        ? new GrpcConnection({ endpoint: imageEndpoint, flag: '--image-service-endpoint', clock })
        : this.connection;
    this.#requestTimeoutMs = requestTimeoutMs ?? defaultRequestTimeoutMs;
    this.#meter = callMeter(metrics, clock);
  }

  readonly version = this.#method('version');
  readonly status = this.#method('status');
  readonly runtimeConfig = this.#method('runtimeConfig');
  readonly updateRuntimeConfig = this.#method('updateRuntimeConfig');
  readonly runPodSandbox = this.#method('runPodSandbox');
  readonly stopPodSandbox = this.#method('stopPodSandbox');
  readonly removePodSandbox = this.#method('removePodSandbox');
  readonly podSandboxStatus = this.#method('podSandboxStatus');
  readonly listPodSandbox = this.#method('listPodSandbox');
  readonly updatePodSandboxResources = this.#method('updatePodSandboxResources');
  readonly createContainer = this.#method('createContainer');
  readonly startContainer = this.#method('startContainer');
  readonly stopContainer = this.#method('stopContainer');
  readonly removeContainer = this.#method('removeContainer');
  readonly containerStatus = this.#method('containerStatus');
  readonly listContainers = this.#method('listContainers');
  readonly updateContainerResources = this.#method('updateContainerResources');
  readonly reopenContainerLog = this.#method('reopenContainerLog');
  readonly checkpointContainer = this.#method('checkpointContainer');
  readonly execSync = this.#method('execSync');
  readonly exec = this.#method('exec');
  readonly attach = this.#method('attach');
  readonly portForward = this.#method('portForward');
  readonly containerStats = this.#method('containerStats');
  readonly listContainerStats = this.#method('listContainerStats');
  readonly podSandboxStats = this.#method('podSandboxStats');
  readonly listPodSandboxStats = this.#method('listPodSandboxStats');
  readonly listMetricDescriptors = this.#method('listMetricDescriptors');
  readonly listPodSandboxMetrics = this.#method('listPodSandboxMetrics');
  readonly imageStatus = this.#method('imageStatus');
  readonly listImages = this.#method('listImages');
  readonly pullImage = this.#method('pullImage');
  readonly removeImage = this.#method('removeImage');
  readonly imageFsInfo = this.#method('imageFsInfo');

  /** Closes for good; calls in flight fail. */
  async close(): Promise<void> {
    await this.connection.close();
    if (this.imageConnection !== this.connection) await this.imageConnection.close();
  }

  #method<Call extends RuntimeCall>(call: Call) {
    const { service, method } = methodOf(call);
    return (request: RequestOf<Call>, { signal, timeoutMs }: CallOptions = {}): Promise<ResponseOf<Call>> =>
      this.#meter(call, request, () => {
        const images = service === ImageServiceDefinition.fullName;
        return (images ? this.imageConnection : this.connection).unary({
          service,
          method,
          request,
          subject: callSubject(request),
          timeoutMs: timeoutMs ?? callTimeout(call, request, this.#requestTimeoutMs),
          ...(signal && { signal }),
        });
      });
  }
}

function methodOf<Call extends RuntimeCall>(
  call: Call,
): { service: string; method: GrpcMethod<RequestOf<Call>, ResponseOf<Call>> } {
  const definition =
    call in ImageServiceDefinition.methods ? ImageServiceDefinition : RuntimeServiceDefinition;
  const methods: Partial<Record<RuntimeCall, unknown>> = definition.methods;
  return {
    service: definition.fullName,
    method: methods[call] as GrpcMethod<RequestOf<Call>, ResponseOf<Call>>,
  };
}
