/**
 * The few CRI calls that setting a machine up and taking it down need. Each call opens and closes its own
 * connection and has a time limit; the agent's own client is not used, so that a broken one cannot keep
 * a machine from being cleaned.
 */
import { Client, credentials } from '@grpc/grpc-js';
import {
  ImageServiceDefinition,
  PodSandboxState,
  RuntimeServiceDefinition,
} from '../../src/runtime/generated/cri.ts';

interface Codec<T> {
  encode(message: T): { finish(): Uint8Array };
  decode(input: Uint8Array): T;
}

interface Method<Request, Response> {
  name: string;
  requestType: Codec<Request>;
  responseType: Codec<Response>;
}

interface Service {
  fullName: string;
}

export interface CriCall<Request, Response> {
  endpoint: string;
  service: Service;
  method: Method<Request, Response>;
  request: Request;
  /** Milliseconds. */
  timeout: number;
}

/** Makes one unary call; an error names call and endpoint and has gRPC's as its cause. */
export function criCall<Request, Response>(what: CriCall<Request, Response>): Promise<Response> {
  const client = new Client(what.endpoint, credentials.createInsecure());
  return new Promise<Response>((resolve, reject) => {
    client.makeUnaryRequest(
      `/${what.service.fullName}/${what.method.name}`,
      (message: Request) => Buffer.from(what.method.requestType.encode(message).finish()),
      (bytes: Buffer) => what.method.responseType.decode(bytes),
      what.request,
      { deadline: Date.now() + what.timeout },
      (error, response) => {
        if (error !== null)
          reject(new Error(`${what.method.name} on ${what.endpoint}: ${error.message}`, { cause: error }));
        else if (response !== undefined) resolve(response);
      },
    );
  }).finally(() => client.close());
}

const runtime = RuntimeServiceDefinition;

/** Name and version of the runtime, e.g. `containerd 1.6.20`. */
export async function runtimeVersion(endpoint: string): Promise<string> {
  const answer = await criCall({
    endpoint,
    service: runtime,
    method: runtime.methods.version,
    request: { version: 'v1' },
    timeout: 5000,
  });
  return `${answer.runtimeName} ${answer.runtimeVersion}`;
}

/** What the runtime says is not ready, e.g. `NetworkReady: cni plugin not initialized`; empty when all is. */
export async function runtimeComplaints(endpoint: string): Promise<string[]> {
  const answer = await criCall({
    endpoint,
    service: runtime,
    method: runtime.methods.status,
    request: { verbose: false },
    timeout: 5000,
  });
  const conditions = answer.status?.conditions ?? [];
  return ['RuntimeReady', 'NetworkReady'].flatMap((type) => {
    const condition = conditions.find((candidate) => candidate.type === type);
    if (condition?.status === true) return [];
    return [`${type}: ${condition?.message ?? 'not reported'}`];
  });
}

/** Every reference that the runtime's image list knows. */
export async function listImageReferences(endpoint: string): Promise<Set<string>> {
  const answer = await criCall({
    endpoint,
    service: ImageServiceDefinition,
    method: ImageServiceDefinition.methods.listImages,
    request: { filter: undefined },
    timeout: 10_000,
  });
  return new Set(answer.images.flatMap((image) => image.repoTags));
}

export interface SandboxSummary {
  id: string;
  /** `namespace/name`. */
  pod: string;
  /** Its namespaces are held, so containers may run in it. */
  ready: boolean;
}

/** All sandboxes, ready or not. */
export async function listSandboxes(endpoint: string): Promise<SandboxSummary[]> {
  const answer = await criCall({
    endpoint,
    service: runtime,
    method: runtime.methods.listPodSandbox,
    request: { filter: undefined },
    timeout: 10_000,
  });
  return answer.items.map((item) => ({
    id: item.id,
    ready: item.state === PodSandboxState.SANDBOX_READY,
    pod: `${item.metadata?.namespace ?? ''}/${item.metadata?.name ?? ''}`,
  }));
}

/** Stops a sandbox, killing what runs in it, and removes it with its containers. */
export async function removeSandbox(endpoint: string, podSandboxId: string): Promise<void> {
  const { stopPodSandbox, removePodSandbox } = runtime.methods;
  const common = { endpoint, service: runtime, request: { podSandboxId }, timeout: 15_000 };
  await criCall({ ...common, method: stopPodSandbox });
  await criCall({ ...common, method: removePodSandbox });
}
