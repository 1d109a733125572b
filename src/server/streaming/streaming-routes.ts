/**
 * The endpoints that lead into containers: exec, attach, port-forward, and run. Who asks for a stream is
 * joined with the runtime's streaming server; what is refused is refused with a kubelet's codes and words.
 */
import type { Clock } from '../../concurrency/clock.ts';
import type { Exchange, NodeRoute, Question, Upgrade } from '../route.ts';
import { sendText } from '../router.ts';
import { proxyStream, StreamUnreachableError, translateStream } from './stream-proxy.ts';
import {
  forwardedPorts,
  offeredProtocols,
  type StreamOptions,
  StreamRefusal,
  streamOptions,
  tunnelledForward,
} from './stream-request.ts';
import {
  remoteCommandProtocol,
  streamCloseProtocol,
  translateStreams,
  tunnelStreams,
} from './stream-translation.ts';

/** A pod as far as streams into it are concerned. */
export interface StreamedPod {
  readonly uid: string;
  /** The id of the container's running instance. */
  running(container: string): string | undefined;
  /** Whether the container has a terminal; undefined for one the spec does not name. */
  hasTerminal(container: string): boolean | undefined;
  /** The id of the sandbox that is up. */
  sandbox(): string | undefined;
}

/**
 * The runtime's part. The answers are URLs of its streaming server; rejections with {@link StreamRefusal} are
 * passed on, others are failures.
 */
export interface StreamRuntime {
  exec(
    request: StreamOptions & { readonly containerId: string; readonly command: readonly string[] },
    signal: AbortSignal,
  ): Promise<string>;
  attach(request: StreamOptions & { readonly containerId: string }, signal: AbortSignal): Promise<string>;
  portForward(
    request: { readonly sandboxId: string; readonly ports: readonly number[] },
    signal: AbortSignal,
  ): Promise<string>;
  /** Runs a command to its end and answers all it wrote. */
  run(
    request: { readonly containerId: string; readonly command: readonly string[] },
    signal: AbortSignal,
  ): Promise<Buffer>;
}

export interface StreamingRoutesInput {
  readonly pod: (namespace: string, name: string) => StreamedPod | undefined;
  readonly runtime: StreamRuntime;
  /** `streamingConnectionIdleTimeout`, milliseconds; 0: never. */
  readonly idleMs: number;
  /** Whether WebSockets are translated for the runtime (gate ExtendWebSocketsToKubelet). */
  readonly translates: boolean;
  readonly clock: Clock;
}

/** A stream that the runtime is ready for. */
interface OpenedStream {
  readonly url: string;
  /** The process's streams; absent: of port-forward, where the two sides agree about streams as they go. */
  readonly options?: StreamOptions;
}

const pod = '{podNamespace}/{podID}';

export function streamingRoutes(input: StreamingRoutesInput): NodeRoute[] {
  const stream = (path: string, open: (question: Question) => Promise<OpenedStream>): NodeRoute => ({
    methods: ['GET', 'POST'],
    path,
    debugging: true,
    handle: (exchange) => refuseWithoutUpgrade(exchange, input),
    upgrade: (upgrade) => passThrough(upgrade, open, input),
  });
  const paths = (name: string) => [
    `/${name}/${pod}/{containerName}`,
    `/${name}/${pod}/{uid}/{containerName}`,
  ];
  return [
    ...paths('exec').map((path) => stream(path, (question) => openExec(question, input))),
    ...paths('attach').map((path) => stream(path, (question) => openAttach(question, input))),
    ...[`/portForward/${pod}`, `/portForward/${pod}/{uid}`].map((path) =>
      stream(path, (question) => openPortForward(question, input)),
    ),
    ...paths('run').map(
      (path): NodeRoute => ({
        methods: ['POST'],
        path,
        debugging: true,
        handle: (exchange) => run(exchange, input),
      }),
    ),
  ];
}

async function openExec(question: Question, input: StreamingRoutesInput): Promise<OpenedStream> {
  const options = streamOptions(question.query);
  const containerId = runningContainer(question, input);
  const command = question.query.getAll('command');
  const url = await input.runtime.exec({ ...options, containerId, command }, question.signal);
  return { url, options };
}

async function openAttach(question: Question, input: StreamingRoutesInput): Promise<OpenedStream> {
  const wanted = streamOptions(question.query);
  const { containerName = '', podID = '', podNamespace = '' } = question.parameters;
  const found = podOf(question, input);
  const containerId = hasUid(found, question) ? found.running(containerName) : undefined;
  // The terminal was made with the container: what the client wishes changes nothing about it.
  const tty = found.hasTerminal(containerName);
  if (containerId === undefined || tty === undefined) {
    throw new StreamRefusal(500, `container ${containerName} not found in pod ${podID}_${podNamespace}`);
  }
  const options = { ...wanted, tty, stderr: wanted.stderr && !tty };
  const url = await input.runtime.attach({ ...options, containerId }, question.signal);
  return { url, options };
}

async function openPortForward(question: Question, input: StreamingRoutesInput): Promise<OpenedStream> {
  const { query, headers } = question;
  const ports = forwardedPorts(query, {
    upgrade: headers.upgrade,
    'sec-websocket-protocol': headers['sec-websocket-protocol'],
  });
  const found = podOf(question, input);
  if (!hasUid(found, question)) throw new StreamRefusal(404, 'pod not found');
  const sandboxId = found.sandbox();
  if (sandboxId === undefined) {
    throw new StreamRefusal(500, `failed to find sandboxID for pod ${question.parameters['podID']}`);
  }
  return { url: await input.runtime.portForward({ sandboxId, ports }, question.signal) };
}

async function run(exchange: Exchange, input: StreamingRoutesInput): Promise<void> {
  const { response, query, signal } = exchange;
  try {
    const containerId = runningContainer(exchange, input);
    const output = await input.runtime.run(
      { containerId, command: (query.get('cmd') ?? '').split(' ') },
      signal,
    );
    // Kubernetes labels it so, whatever it is.
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': output.length });
    response.end(output);
  } catch (error) {
    if (!(error instanceof StreamRefusal)) throw error;
    sendText(response, error.status, error.message);
  }
}

function podOf({ parameters }: Question, { pod: find }: StreamingRoutesInput): StreamedPod {
  const found = find(parameters['podNamespace'] ?? '', parameters['podID'] ?? '');
  if (!found) throw new StreamRefusal(404, 'pod does not exist');
  return found;
}

const hasUid = (found: StreamedPod, { parameters }: Question): boolean =>
  parameters['uid'] === undefined || parameters['uid'] === found.uid;

function runningContainer(question: Question, input: StreamingRoutesInput): string {
  const { containerName = '' } = question.parameters;
  const found = podOf(question, input);
  const id = hasUid(found, question) ? found.running(containerName) : undefined;
  if (id === undefined)
    throw new StreamRefusal(500, `container not found (${JSON.stringify(containerName)})`);
  return id;
}

/** A request that is no upgrade is told the first thing that is wrong with it. */
function refuseWithoutUpgrade(exchange: Exchange, input: StreamingRoutesInput): void {
  const { query, path, response } = exchange;
  try {
    if (!path.startsWith('/portForward/')) streamOptions(query);
    podOf(exchange, input);
    throw new StreamRefusal(400, 'Upgrade request required');
  } catch (error) {
    if (!(error instanceof StreamRefusal)) throw error;
    sendText(response, error.status, error.message);
  }
}

async function passThrough(
  upgrade: Upgrade,
  open: (question: Question) => Promise<OpenedStream>,
  input: StreamingRoutesInput,
): Promise<void> {
  const { socket: client, head, method, rawHeaders } = upgrade;
  const { idleMs, clock } = input;
  try {
    const wish = input.translates ? translatedWish(upgrade) : undefined;
    const { url, options } = await open(upgrade);
    const stream = { client, head, method, rawHeaders, url: new URL(url), idleMs, clock };
    if (!wish) return await proxyStream(stream);
    const translation = options ? translateStreams(options) : tunnelStreams();
    await translateStream({ ...stream, ...wish, translation });
  } catch (error) {
    if (upgrade.signal.aborted) return;
    if (error instanceof StreamRefusal) {
      const tooMany = error.status === 429;
      return upgrade.refuse(error.status, error.message, tooMany ? { 'retry-after': '1' } : {});
    }
    if (error instanceof StreamUnreachableError) return upgrade.refuse(500, error.message);
    throw error;
  }
}

/** Which of the WebSockets that are translated the client wishes; undefined: none of them. */
function translatedWish({ headers, path }: Upgrade) {
  const { 'sec-websocket-key': key, 'sec-websocket-version': version } = headers;
  const offered = offeredProtocols(headers);
  const isForward = path.startsWith('/portForward/');
  const protocol = isForward
    ? offered.find(tunnelledForward)
    : offered.find((name) => name === streamCloseProtocol);
  if (protocol === undefined) return undefined;
  if (key === undefined || version !== '13') throw new StreamRefusal(400, 'not a WebSocket of version 13');
  const runtimeProtocol = isForward ? protocol.slice(protocol.indexOf('+') + 1) : remoteCommandProtocol;
  return { key, protocol, runtimeProtocol };
}
