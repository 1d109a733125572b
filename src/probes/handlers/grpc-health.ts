/**
 * The grpc probe: one `grpc.health.v1.Health/Check` over HTTP/2 without TLS; SERVING is a success. Written on
 * node:http2 directly: a request and an answer of one field each need no gRPC client that keeps channels,
 * timers and name resolvers for every probe.
 */
import type { ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2';
import { failure, isTimeUp, type ProbeOutcome, success } from '../probe-outcome.ts';
import { bracketed, networkErrorText } from './network-error.ts';

/** Whom to ask for its health. */
export interface GrpcTarget {
  readonly host: string;
  readonly port: number;
  /** `grpc.service` of the probe, empty for the server as a whole. */
  readonly service: string;
  readonly userAgent: string;
}

const servingStatuses = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'];
const serving = 1;
const statusOk = 0;
const statusUnimplemented = 12;
/** An answer of one enum takes a few bytes; more is not the health service's. */
const answerLimit = 64 * 1024;

/** Never rejects; `signal` covers connection and call. */
export async function probeGrpcHealth(target: GrpcTarget, signal: AbortSignal): Promise<ProbeOutcome> {
  const address = `${bracketed(target.host)}:${target.port}`;
  const { connect } = await import('node:http2');
  return await new Promise<ProbeOutcome>((resolve) => {
    let connected = false;
    const session = connect(`http://${address}`, { maxSessionMemory: 1 });
    const end = (outcome: ProbeOutcome) => {
      signal.removeEventListener('abort', onAbort);
      session.destroy();
      resolve(outcome);
    };
    const onAbort = () => {
      if (!isTimeUp(signal)) end(failure('probe cancelled'));
      else if (connected)
        end(failure('timeout: health rpc did not complete in time: context deadline exceeded'));
      else end(failure(`timeout: failed to connect service "${address}": context deadline exceeded`));
    };
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) return onAbort();
    session.on('error', (error) => {
      const what = connected ? 'health rpc failed' : `failed to connect service "${address}"`;
      end(failure(`error: ${what}: ${networkErrorText(error)}`));
    });
    session.once('remoteSettings', () => {
      connected = true;
      check(session.request(requestHeaders(target, address)), target.service).then(end, (error: unknown) =>
        end(failure(`error: health rpc failed: ${networkErrorText(error)}`)),
      );
    });
    session.once('close', () => end(failure(`error: the connection to "${address}" was closed`)));
  });
}

function requestHeaders({ userAgent }: GrpcTarget, authority: string) {
  return {
    ':method': 'POST',
    ':scheme': 'http',
    ':authority': authority,
    ':path': '/grpc.health.v1.Health/Check',
    'content-type': 'application/grpc',
    te: 'trailers',
    'user-agent': userAgent,
  };
}

function check(stream: ClientHttp2Stream, service: string): Promise<ProbeOutcome> {
  return new Promise((resolve, reject) => {
    let headers: IncomingHttpHeaders = {};
    let trailers: IncomingHttpHeaders = {};
    const chunks: Buffer[] = [];
    let size = 0;
    stream.on('response', (received) => {
      headers = received;
    });
    stream.on('trailers', (received) => {
      trailers = received;
    });
    stream.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size > answerLimit) stream.destroy(new Error('the answer is too long'));
    });
    stream.on('error', reject);
    stream.on('end', () => resolve(judge({ ...headers, ...trailers }, Buffer.concat(chunks))));
    stream.on('close', () => reject(new Error('the stream was closed without an answer')));
    stream.end(encodeRequest(service));
  });
}

function judge(headers: IncomingHttpHeaders, answer: Buffer): ProbeOutcome {
  const httpStatus = Number(headers[':status']);
  const status = headers['grpc-status'];
  if (status === undefined)
    return failure(`error: health rpc failed: HTTP status ${httpStatus} without a gRPC status`);
  const message = percentDecoded(String(headers['grpc-message'] ?? ''));
  if (Number(status) === statusUnimplemented) {
    return failure(
      `error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ${message}`,
    );
  }
  if (Number(status) !== statusOk)
    return failure(`error: health rpc failed: ${message} (gRPC status ${String(status)})`);
  const health = decodeAnswer(answer);
  if (health === undefined) return failure('error: health rpc failed: the answer cannot be read');
  if (health === serving) return success('service healthy');
  return failure(`service unhealthy (responded with "${servingStatuses[health] ?? health}")`);
}

/** A frame (no compression, length) with `HealthCheckRequest { string service = 1 }`. */
function encodeRequest(service: string): Buffer {
  const text = Buffer.from(service);
  const message = text.length === 0 ? text : Buffer.concat([Buffer.from([0x0a]), varint(text.length), text]);
  const frame = Buffer.alloc(5);
  frame.writeUInt32BE(message.length, 1);
  return Buffer.concat([frame, message]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (; value > 0x7f; value >>>= 7) bytes.push((value & 0x7f) | 0x80);
  bytes.push(value);
  return Buffer.from(bytes);
}

/** The status of `HealthCheckResponse { ServingStatus status = 1 }`; undefined when it is none. */
export function decodeAnswer(data: Buffer): number | undefined {
  if (data.length < 5 || data[0] !== 0 || data.length !== 5 + data.readUInt32BE(1)) return undefined;
  const reader = { data, at: 5 };
  let status = 0;
  while (reader.at < data.length) {
    const tag = readVarint(reader);
    if (tag === undefined) return undefined;
    switch (tag & 7) {
      case 0: {
        const value = readVarint(reader);
        if (value === undefined) return undefined;
        if (tag >>> 3 === 1) status = value;
        break;
      }
      case 1:
        reader.at += 8;
        break;
      case 2: {
        const length = readVarint(reader);
        if (length === undefined) return undefined;
        reader.at += length;
        break;
      }
      case 5:
        reader.at += 4;
        break;
      default:
        return undefined;
    }
  }
  return reader.at === data.length ? status : undefined;
}

function readVarint(reader: { readonly data: Buffer; at: number }): number | undefined {
  let value = 0;
  for (let factor = 1; factor <= 2 ** 63; factor *= 128) {
    const byte = reader.data[reader.at++];
    if (byte === undefined) return undefined;
    value += (byte & 0x7f) * factor;
    if (byte < 0x80) return value;
  }
  return undefined;
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
