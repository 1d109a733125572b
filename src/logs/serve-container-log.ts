/**
 * Answers `GET /containerLogs/<namespace>/<pod>/<container>`: refuses what makes no sense with the kubelet's
 * own codes and words, and sends the log as it is read, no faster than the client takes it.
 */
import type { ServerResponse } from 'node:http';
import type { Clock } from '../concurrency/clock.ts';
import type { PodStatus } from '../kubernetes/types.ts';
import { type LoggedInstance, logInstance, NoInstanceError } from './log-instance.ts';
import { readLogQuery } from './log-query.ts';
import { type FollowedContainer, type LogSink, NoLogError, readContainerLog } from './read-container-log.ts';

/** A pod as far as its logs are concerned. */
export interface LoggedPod {
  readonly status: PodStatus | undefined;
  /** Whether the spec names the container. */
  hasContainer(name: string): boolean;
  /** Instances of the container that the runtime has, newest first. */
  instances(container: string): readonly LoggedInstance[];
  follow(container: string): FollowedContainer;
}

export interface ServeLogPorts {
  readonly pod: (namespace: string, name: string) => LoggedPod | undefined;
  /** Gate PodLogsQuerySplitStreams. */
  readonly streamsSplit: boolean;
  readonly clock: Clock;
}

export interface LogRequest {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly query: URLSearchParams;
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal;
}

type Response = Pick<
  ServerResponse,
  'writeHead' | 'write' | 'end' | 'once' | 'off' | 'destroyed' | 'flushHeaders'
>;

/** Resolves when the answer is complete; rejects when a log that has begun cannot be read on. */
export async function serveContainerLog(
  request: LogRequest,
  response: Response,
  { pod: podOf, streamsSplit, clock }: ServeLogPorts,
): Promise<void> {
  const { namespace, pod: name, container, signal } = request;
  const query = readLogQuery(request.query, { now: clock.now(), streamsSplit });
  if ('status' in query) return refuse(response, query.status, query.text);
  const pod = podOf(namespace, name);
  if (!pod) return refuse(response, 404, `pod ${JSON.stringify(name)} does not exist`);
  if (!pod.hasContainer(container)) {
    return refuse(
      response,
      404,
      `container ${JSON.stringify(container)} not found in pod ${JSON.stringify(name)}`,
    );
  }
  let hasBegun = false;
  const begin = (): void => {
    if (hasBegun) return;
    hasBegun = true;
    response.writeHead(200, { 'content-type': 'text/plain' });
    // Whoever follows a silent container sees that the answer has begun.
    response.flushHeaders();
  };
  const sink = responseSink(response, begin);
  try {
    const { previous, follow, ...how } = query;
    const instances = pod.instances(container);
    const instance = logInstance({ pod: name, container, previous, status: pod.status, instances });
    if (!instance.logPath) throw new NoInstanceError(`the runtime keeps no log of container ${instance.id}`);
    // A log that has ended is not followed.
    const isFollowed = follow && previous === 0;
    if (isFollowed) begin();
    const followed = isFollowed && { follow: pod.follow(container) };
    const { attempt, logPath: path } = instance;
    await readContainerLog({ ...how, path, attempt, clock, ...followed }, sink, signal);
    begin();
    response.end();
  } catch (error) {
    if (signal.aborted) return;
    if (hasBegun) throw error;
    const isKnown = error instanceof NoInstanceError || error instanceof NoLogError;
    refuse(response, 400, isKnown ? error.message : `failed to read the log: ${(error as Error).message}`);
  }
}

function refuse(response: Response, status: number, text: string): void {
  response.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    'x-content-type-options': 'nosniff',
    'content-length': Buffer.byteLength(text),
  });
  response.end(text);
}

/** Waits whenever the client is slower than the log. */
function responseSink(response: Response, begin: () => void): LogSink {
  return {
    write(text, signal) {
      begin();
      if (response.write(text)) return Promise.resolve();
      return new Promise((resolve, reject) => {
        const settle = (): void => {
          response.off('drain', settle).off('close', settle).off('error', settle);
          signal.removeEventListener('abort', settle);
          if (signal.aborted) reject(signal.reason);
          else if (response.destroyed) reject(new Error('the client has gone away'));
          else resolve();
        };
        response.once('drain', settle).once('close', settle).once('error', settle);
        signal.addEventListener('abort', settle, { once: true });
        if (signal.aborted || response.destroyed) settle();
      });
    },
  };
}
