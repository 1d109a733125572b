/**
 * One pod by bare CRI calls, with no agent: checks that a containerd can run pods at all, and is the
 * floor that the agent is measured against.
 */
import { criCall } from '../../scripts/machine/cri-calls.ts';
import {
  ContainerConfig,
  ImageSpec,
  LinuxPodSandboxConfig,
  PodSandboxConfig,
  RuntimeServiceDefinition,
} from '../../src/runtime/generated/cri.ts';

export interface BarePodRequest {
  /** `unix://` endpoint of the runtime. */
  endpoint: string;
  name: string;
  image: string;
  /** Kubernetes namespace; default `bare`. */
  namespace?: string;
  /** Cgroup under which the pod runs; default the runtime's own choice. */
  cgroupParent?: string;
  /** Host ports to forward to a container port (TCP). */
  hostPorts?: readonly { host: number; container: number }[];
}

export interface BarePod {
  sandbox: string;
  container: string;
  /** IPv4 address in the pod network. */
  address: string;
}

const service = RuntimeServiceDefinition;
const empty = Buffer.alloc(0);
/** Milliseconds; generous, since emulated machines run this too. */
const timeout = 60_000;

/** RunPodSandbox, CreateContainer, StartContainer; resolves when the container runs. */
export async function startBarePod(request: BarePodRequest): Promise<BarePod> {
  const { endpoint, name, image } = request;
  const linux =
    request.cgroupParent === undefined
      ? undefined
      : { ...LinuxPodSandboxConfig.decode(empty), cgroupParent: request.cgroupParent };
  const sandboxConfig: PodSandboxConfig = {
    ...PodSandboxConfig.decode(empty),
    metadata: { name, uid: `uid-${name}`, namespace: request.namespace ?? 'bare', attempt: 0 },
    portMappings: (request.hostPorts ?? []).map(({ host, container }) => ({
      protocol: 0,
      containerPort: container,
      hostPort: host,
      hostIp: '',
    })),
    linux,
  };
  const { podSandboxId } = await criCall({
    endpoint,
    service,
    method: service.methods.runPodSandbox,
    request: { config: sandboxConfig, runtimeHandler: '' },
    timeout,
  });
  const config: ContainerConfig = {
    ...ContainerConfig.decode(empty),
    metadata: { name: 'main', attempt: 0 },
    image: { ...ImageSpec.decode(empty), image },
  };
  const { containerId } = await criCall({
    endpoint,
    service,
    method: service.methods.createContainer,
    request: { podSandboxId, config, sandboxConfig },
    timeout,
  });
  await criCall({
    endpoint,
    service,
    method: service.methods.startContainer,
    request: { containerId },
    timeout,
  });
  const { status } = await criCall({
    endpoint,
    service,
    method: service.methods.podSandboxStatus,
    request: { podSandboxId, verbose: false },
    timeout,
  });
  return { sandbox: podSandboxId, container: containerId, address: status?.network?.ip ?? '' };
}

/** StopPodSandbox and RemovePodSandbox; the container goes with it. */
export async function removeBarePod(endpoint: string, pod: BarePod): Promise<void> {
  const request = { podSandboxId: pod.sandbox };
  await criCall({ endpoint, service, method: service.methods.stopPodSandbox, request, timeout });
  await criCall({ endpoint, service, method: service.methods.removePodSandbox, request, timeout });
}
