/**
 * What the agent asks of a container runtime: the unary calls of CRI v1, one method each. The CRI client, other
 * runtimes and the fake of the tests implement it, and one contract suite holds them to the same behaviour.
 *
 * Requests and responses are the generated CRI messages: 64-bit integers are `bigint`, times are nanoseconds
 * since the epoch, enum values are numbers, text of the environment is UTF-8 bytes. A message with every field
 * at its default is `Message.decode(new Uint8Array())`.
 */
import type {
  AttachRequest,
  AttachResponse,
  CheckpointContainerRequest,
  CheckpointContainerResponse,
  ContainerStatsRequest,
  ContainerStatsResponse,
  ContainerStatusRequest,
  ContainerStatusResponse,
  CreateContainerRequest,
  CreateContainerResponse,
  ExecRequest,
  ExecResponse,
  ExecSyncRequest,
  ExecSyncResponse,
  ImageFsInfoRequest,
  ImageFsInfoResponse,
  ImageStatusRequest,
  ImageStatusResponse,
  ListContainerStatsRequest,
  ListContainerStatsResponse,
  ListContainersRequest,
  ListContainersResponse,
  ListImagesRequest,
  ListImagesResponse,
  ListMetricDescriptorsRequest,
  ListMetricDescriptorsResponse,
  ListPodSandboxMetricsRequest,
  ListPodSandboxMetricsResponse,
  ListPodSandboxRequest,
  ListPodSandboxResponse,
  ListPodSandboxStatsRequest,
  ListPodSandboxStatsResponse,
  PodSandboxStatsRequest,
  PodSandboxStatsResponse,
  PodSandboxStatusRequest,
  PodSandboxStatusResponse,
  PortForwardRequest,
  PortForwardResponse,
  PullImageRequest,
  PullImageResponse,
  RemoveContainerRequest,
  RemoveContainerResponse,
  RemoveImageRequest,
  RemoveImageResponse,
  RemovePodSandboxRequest,
  RemovePodSandboxResponse,
  ReopenContainerLogRequest,
  ReopenContainerLogResponse,
  RunPodSandboxRequest,
  RunPodSandboxResponse,
  RuntimeConfigRequest,
  RuntimeConfigResponse,
  StartContainerRequest,
  StartContainerResponse,
  StatusRequest,
  StatusResponse,
  StopContainerRequest,
  StopContainerResponse,
  StopPodSandboxRequest,
  StopPodSandboxResponse,
  UpdateContainerResourcesRequest,
  UpdateContainerResourcesResponse,
  UpdatePodSandboxResourcesRequest,
  UpdatePodSandboxResourcesResponse,
  UpdateRuntimeConfigRequest,
  UpdateRuntimeConfigResponse,
  VersionRequest,
  VersionResponse,
} from './generated/cri.ts';

/** What every call of the runtime takes beside its request. */
export interface CallOptions {
  /** Gives the call up; it then rejects with the signal's reason, and its outcome is unknown. */
  readonly signal?: AbortSignal;
  /** Milliseconds to wait for the answer instead of the call's usual limit; `Infinity` for no limit. */
  readonly timeoutMs?: number;
}

/**
 * Every method rejects with `RuntimeCallError` when the runtime refuses, cannot be reached, or does not answer
 * within the call's limit (see `callTimeout`).
 */
export interface ContainerRuntime {
  /** Name and version of the runtime; proves that it speaks CRI v1. */
  version(request: VersionRequest, options?: CallOptions): Promise<VersionResponse>;
  /** Conditions, handlers and features of the runtime. */
  status(request: StatusRequest, options?: CallOptions): Promise<StatusResponse>;
  /** Settings the agent has to share with the runtime, such as the cgroup driver. */
  runtimeConfig(request: RuntimeConfigRequest, options?: CallOptions): Promise<RuntimeConfigResponse>;
  /** Tells the runtime the node's pod CIDR. */
  updateRuntimeConfig(
    request: UpdateRuntimeConfigRequest,
    options?: CallOptions,
  ): Promise<UpdateRuntimeConfigResponse>;
  /** Makes and starts the surroundings of a pod: namespaces, network, cgroup parent. */
  runPodSandbox(request: RunPodSandboxRequest, options?: CallOptions): Promise<RunPodSandboxResponse>;
  /** Stops what is left in a sandbox and gives its network back. Safe to repeat; some say NotFound of what is gone. */
  stopPodSandbox(request: StopPodSandboxRequest, options?: CallOptions): Promise<StopPodSandboxResponse>;
  /** Forgets a sandbox and everything in it. Safe to repeat. */
  removePodSandbox(
    request: RemovePodSandboxRequest,
    options?: CallOptions,
  ): Promise<RemovePodSandboxResponse>;
  /** State and addresses of one sandbox; NotFound when there is none. */
  podSandboxStatus(
    request: PodSandboxStatusRequest,
    options?: CallOptions,
  ): Promise<PodSandboxStatusResponse>;
  /** Sandboxes that pass a filter. */
  listPodSandbox(request: ListPodSandboxRequest, options?: CallOptions): Promise<ListPodSandboxResponse>;
  /** Changes the limits of a whole pod. */
  updatePodSandboxResources(
    request: UpdatePodSandboxResourcesRequest,
    options?: CallOptions,
  ): Promise<UpdatePodSandboxResourcesResponse>;
  /** Makes a container in a sandbox without starting it. */
  createContainer(request: CreateContainerRequest, options?: CallOptions): Promise<CreateContainerResponse>;
  /** Starts a made container. */
  startContainer(request: StartContainerRequest, options?: CallOptions): Promise<StartContainerResponse>;
  /** Sends the stop signal, then SIGKILL after `timeout` seconds. Safe to repeat; some say NotFound of what is gone. */
  stopContainer(request: StopContainerRequest, options?: CallOptions): Promise<StopContainerResponse>;
  /** Forgets a container, killing it if need be. Safe to repeat. */
  removeContainer(request: RemoveContainerRequest, options?: CallOptions): Promise<RemoveContainerResponse>;
  /** State of one container; NotFound when there is none. */
  containerStatus(request: ContainerStatusRequest, options?: CallOptions): Promise<ContainerStatusResponse>;
  /** Containers that pass a filter. */
  listContainers(request: ListContainersRequest, options?: CallOptions): Promise<ListContainersResponse>;
  /** Changes the cgroup limits of a container. */
  updateContainerResources(
    request: UpdateContainerResourcesRequest,
    options?: CallOptions,
  ): Promise<UpdateContainerResourcesResponse>;
  /** Opens the log file anew after it was rotated. */
  reopenContainerLog(
    request: ReopenContainerLogRequest,
    options?: CallOptions,
  ): Promise<ReopenContainerLogResponse>;
  /** Writes a checkpoint of a container to an archive. */
  checkpointContainer(
    request: CheckpointContainerRequest,
    options?: CallOptions,
  ): Promise<CheckpointContainerResponse>;
  /** Runs a command in a container and answers its output. */
  execSync(request: ExecSyncRequest, options?: CallOptions): Promise<ExecSyncResponse>;
  /** Prepares an interactive command; answers the URL of a streaming server. */
  exec(request: ExecRequest, options?: CallOptions): Promise<ExecResponse>;
  /** Prepares attaching to the main process; answers a URL. */
  attach(request: AttachRequest, options?: CallOptions): Promise<AttachResponse>;
  /** Prepares forwarding of ports into a sandbox; answers a URL. */
  portForward(request: PortForwardRequest, options?: CallOptions): Promise<PortForwardResponse>;
  /** Usage of one container. */
  containerStats(request: ContainerStatsRequest, options?: CallOptions): Promise<ContainerStatsResponse>;
  /** Usage of the containers that pass a filter. */
  listContainerStats(
    request: ListContainerStatsRequest,
    options?: CallOptions,
  ): Promise<ListContainerStatsResponse>;
  /** Usage of one pod. */
  podSandboxStats(request: PodSandboxStatsRequest, options?: CallOptions): Promise<PodSandboxStatsResponse>;
  /** Usage of the pods that pass a filter. */
  listPodSandboxStats(
    request: ListPodSandboxStatsRequest,
    options?: CallOptions,
  ): Promise<ListPodSandboxStatsResponse>;
  /** Metrics the runtime can give per pod. */
  listMetricDescriptors(
    request: ListMetricDescriptorsRequest,
    options?: CallOptions,
  ): Promise<ListMetricDescriptorsResponse>;
  /** Metrics of every pod. */
  listPodSandboxMetrics(
    request: ListPodSandboxMetricsRequest,
    options?: CallOptions,
  ): Promise<ListPodSandboxMetricsResponse>;
  /** One image; the answer is empty when it is absent. */
  imageStatus(request: ImageStatusRequest, options?: CallOptions): Promise<ImageStatusResponse>;
  /** Images that pass a filter. */
  listImages(request: ListImagesRequest, options?: CallOptions): Promise<ListImagesResponse>;
  /** Pulls an image; answers the reference to make containers from. */
  pullImage(request: PullImageRequest, options?: CallOptions): Promise<PullImageResponse>;
  /** Removes an image. Safe to repeat. */
  removeImage(request: RemoveImageRequest, options?: CallOptions): Promise<RemoveImageResponse>;
  /** Usage of the file systems that hold images and containers. */
  imageFsInfo(request: ImageFsInfoRequest, options?: CallOptions): Promise<ImageFsInfoResponse>;
}

/** Name of a call as a method of {@link ContainerRuntime}. */
export type RuntimeCall = keyof ContainerRuntime;

/** The request message of a call. */
export type RequestOf<Call extends RuntimeCall> = Parameters<ContainerRuntime[Call]>[0];

/** The answer message of a call. */
export type ResponseOf<Call extends RuntimeCall> = Awaited<ReturnType<ContainerRuntime[Call]>>;
