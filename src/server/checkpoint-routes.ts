/**
 * `POST /checkpoint/…`: has the runtime write a container's processes and files to an archive in the node's own
 * directory, without stopping it (gate ContainerCheckpoint). Whoever may ask may fill that directory: archives
 * stay until somebody takes them away.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Exchange, NodeRoute } from './route.ts';
import { sendText } from './router.ts';

/** A pod as far as checkpoints are concerned. */
export interface CheckpointedPod {
  readonly hasContainer: (name: string) => boolean;
  /** The id of the container's running instance. */
  readonly running: (container: string) => string | undefined;
}

export interface CheckpointRoutesInput {
  readonly pod: (namespace: string, name: string) => CheckpointedPod | undefined;
  /** CRI CheckpointContainer; `timeout` in seconds, 0: the runtime's own. */
  readonly checkpoint: (
    request: { readonly containerId: string; readonly location: string; readonly timeout: bigint },
    signal: AbortSignal,
  ) => Promise<void>;
  /** `<root>/checkpoints`; made when it is needed. */
  readonly directory: string;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

export function checkpointRoutes(input: CheckpointRoutesInput): NodeRoute[] {
  return [
    {
      methods: ['POST'],
      path: '/checkpoint/{podNamespace}/{podID}/{containerName}',
      handle: (exchange) => checkpoint(exchange, input),
    },
  ];
}

async function checkpoint(
  { parameters, query, response, signal }: Exchange,
  { pod: find, checkpoint: write, directory, now }: CheckpointRoutesInput,
): Promise<void> {
  const { podNamespace = '', podID = '', containerName = '' } = parameters;
  const pod = find(podNamespace, podID);
  if (!pod) return sendText(response, 404, 'pod does not exist\n');
  if (!pod.hasContainer(containerName)) {
    return sendText(response, 404, `container ${containerName} does not exist\n`);
  }
  const timeout = seconds(query.getAll('timeout').at(-1));
  if (timeout === undefined) return sendText(response, 404, 'cannot parse value of timeout parameter\n');
  const time = new Date(now()).toISOString().replace(/\.\d+Z$/, 'Z');
  // Names of Kubernetes hold nothing that could lead elsewhere.
  const location = join(directory, `checkpoint-${podID}_${podNamespace}-${containerName}-${time}.tar`);
  try {
    const containerId = pod.running(containerName);
    if (containerId === undefined) throw new Error(`container ${containerName} is not running`);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await write({ containerId, location, timeout }, signal);
  } catch (error) {
    if (signal.aborted) return;
    const subject = `${podNamespace}/${podID}/${containerName}`;
    return sendText(response, 500, `checkpointing of ${subject} failed (${(error as Error).message})\n`);
  }
  const answer = JSON.stringify({ items: [location] });
  response.writeHead(200, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(answer),
  });
  response.end(answer);
}

/** A 64-bit number; undefined for what is none. */
function seconds(text: string | undefined): bigint | undefined {
  if (text === undefined) return 0n;
  if (!/^[+-]?\d{1,19}$/.test(text)) return undefined;
  const value = BigInt(text);
  return BigInt.asIntN(64, value) === value ? value : undefined;
}
