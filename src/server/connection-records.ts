/**
 * The connections of a server: which are busy, which have nothing to do, and for how long. It is what idle
 * limits, the limit on open connections and an orderly end go by.
 *
 * When the house is full, whoever has had nothing to do for longest leaves: a client that only holds
 * connections open keeps nobody out.
 */
import type { ServerResponse } from 'node:http';
import type { Http2Session } from 'node:http2';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';

export interface ConnectionRecord {
  readonly socket: TLSSocket;
  /** Present when the connection speaks HTTP/2. */
  session?: Http2Session;
  readonly answers: Set<ServerResponse>;
  /** It has become something else than HTTP, whose owner sees to its end. */
  upgraded: boolean;
}

/** Sockets carry their record, for HTTP/2 shows its socket only through a proxy. */
const recordKey = Symbol('connection record');

type Carrier = { [recordKey]?: ConnectionRecord };

export class ConnectionRecords {
  /** In the order in which they were last busy. */
  readonly #records = new Set<ConnectionRecord>();
  readonly #limit: number;
  #closing = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#records.size;
  }

  add(socket: TLSSocket): void {
    const record: ConnectionRecord = { socket, answers: new Set(), upgraded: false };
    (socket as Carrier)[recordKey] = record;
    this.#records.add(record);
    socket.once('close', () => this.#records.delete(record));
    if (this.#closing) return void socket.destroy();
    if (this.#records.size > this.#limit) this.#makeRoom();
  }

  /** The record of a socket, or of the socket behind an HTTP/2 session. */
  of(socket: Duplex): ConnectionRecord | undefined {
    return (socket as Carrier)[recordKey];
  }

  /** An answer has begun; it ends when `response` closes. */
  answering(record: ConnectionRecord, response: ServerResponse): void {
    record.answers.add(response);
    response.once('close', () => {
      record.answers.delete(response);
      if (!this.#records.delete(record)) return;
      this.#records.add(record);
      if (this.#closing && record.answers.size === 0) leave(record);
    });
  }

  /** Nothing has moved on it for the idle time. */
  onIdle(record: ConnectionRecord): void {
    if (record.upgraded) return;
    const isStuck = record.socket.writableLength > 0 || [...record.answers].some(hasUnread);
    // An answer that has nothing to say for now, such as a log that is followed, may be quiet.
    if (record.answers.size === 0) leave(record);
    else if (isStuck) record.socket.destroy();
  }

  /** Sends home whoever is not being answered, and nobody is let in any more. */
  beginClosing(): void {
    this.#closing = true;
    for (const record of this.#records) {
      if (record.session) record.session.close();
      else if (isIdle(record)) leave(record);
    }
  }

  destroyAll(): void {
    for (const { socket } of this.#records) socket.destroy();
  }

  /** Nobody leaves who is being answered: then it is the newcomer. */
  #makeRoom(): void {
    const records = [...this.#records];
    const leaving = records.find(isIdle) ?? records.at(-1);
    if (!leaving) return;
    // At once, and not when the socket has closed: the next newcomer needs another place.
    this.#records.delete(leaving);
    leaving.socket.destroy();
  }
}

const isIdle = ({ answers, upgraded }: ConnectionRecord) => answers.size === 0 && !upgraded;

const hasUnread = ({ writableLength }: ServerResponse) => writableLength > 0;

function leave({ session, socket }: ConnectionRecord): void {
  if (session) session.close();
  else socket.destroy();
}
