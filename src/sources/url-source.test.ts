import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { silentLogger } from '../telemetry/logger.ts';
import type { LastGood } from './last-good-manifests.ts';
import { createManifestDecoder } from './manifest-decoder.ts';
import { manifestErrorText } from './manifest-error.ts';
import { maxManifestBytes } from './manifest-file.ts';
import type { SourceUpdate } from './pod-source.ts';
import { UrlSource } from './url-source.ts';

const pod = (name: string, image = 'i') => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { containers: [{ name: 'c', image }] },
});
const list = (...items: unknown[]) => JSON.stringify({ apiVersion: 'v1', kind: 'PodList', items });

type Handler = (request: IncomingMessage, response: ServerResponse) => void;
const answer =
  (text: string | Buffer, status = 200, headers: Record<string, string> = {}): Handler =>
  (_request, response) => {
    response.writeHead(status, headers).end(text);
  };

function memory(): LastGood & { texts: Map<string, string> } {
  const texts = new Map<string, string>();
  return {
    texts,
    get: (origin) => texts.get(origin),
    keep: (origin, text) => texts.set(origin, text),
    forget: (origin) => texts.delete(origin),
    origins: () => [...texts.keys()],
  };
}

/** A server that answers as it is told, and the source that asks it. */
class Bench {
  readonly clock = new VirtualClock();
  readonly updates: SourceUpdate[] = [];
  readonly requests: IncomingMessage[] = [];
  handler: Handler = answer(list());
  lastGood = memory();
  url = '';
  /** Polls that have been concluded, whatever they changed. */
  readonly #server: Server;
  #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(t: TestContext) {
    this.#server = createServer((request, response) => {
      this.requests.push(request);
      this.handler(request, response);
    });
    t.after(async () => {
      await this.stop();
      this.#server.closeAllConnections();
      this.#server.close();
    });
  }

  async start(): Promise<void> {
    if (!this.#server.listening)
      await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.url = `http://user:secret@127.0.0.1:${(this.#server.address() as AddressInfo).port}/pods`;
    const source = new UrlSource({
      url: this.url,
      headers: { 'x-token': ['t1', 't2'], 'X-Other': ['o'] },
      checkFrequency: 20_000,
      clock: this.clock,
      log: silentLogger,
      lastGood: this.lastGood,
      decode: createManifestDecoder({
        source: 'http',
        nodeName: 'n',
        now: () => this.clock.now(),
        featureEnabled: () => false,
      }),
    });
    this.#stop = new AbortController();
    this.#running = source.run((update) => this.updates.push(update), this.#stop.signal);
    await this.#concluded();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** The next poll, to its end. */
  async poll(): Promise<SourceUpdate | undefined> {
    const before = this.updates.length;
    await this.clock.advance(20_000);
    await this.#concluded();
    return this.updates[before];
  }

  /** A poll is over when the source waits for the time of the next one. */
  async #concluded(): Promise<void> {
    while ((this.clock.nextTimer() ?? 0) - this.clock.now() !== 20_000) await this.clock.advance(0);
  }

  get last(): SourceUpdate {
    return this.updates.at(-1)!;
  }
}

const names = ({ pods }: SourceUpdate) => pods.map(({ metadata }) => metadata.name);
const texts = ({ errors }: SourceUpdate) => errors.map(manifestErrorText);

describe('pods from a URL', () => {
  it('come with the headers and credentials sent, and are told only when they change', async (t) => {
    const bench = new Bench(t);
    bench.handler = answer(list(pod('a'), pod('b')));
    await bench.start();
    assert.deepEqual(names(bench.last), ['a-n', 'b-n']);
    assert.equal(bench.last.complete, true);
    const { headers } = bench.requests[0]!;
    assert.equal(headers['x-token'], 't1, t2');
    assert.equal(headers['x-other'], 'o');
    assert.equal(headers.authorization, `Basic ${Buffer.from('user:secret').toString('base64')}`);

    assert.equal(await bench.poll(), undefined);
    const [, b] = bench.last.pods;
    bench.handler = answer(list(pod('a', 'new'), pod('b')));
    const changed = await bench.poll();
    assert.equal(changed?.pods[0]?.spec.containers[0]?.image, 'new');
    assert.equal(changed?.pods[1], b);
    bench.handler = answer(list());
    assert.deepEqual((await bench.poll())?.pods, []);
  });

  it('use the ETag of the answer before', async (t) => {
    const bench = new Bench(t);
    bench.handler = (request, response) => {
      if (request.headers['if-none-match'] === '"v1"') response.writeHead(304).end();
      else response.writeHead(200, { etag: '"v1"' }).end(list(pod('a')));
    };
    await bench.start();
    assert.equal(await bench.poll(), undefined);
    assert.equal(bench.requests[1]?.headers['if-none-match'], '"v1"');
  });

  const failures: [name: string, handler: Handler, expected: RegExp][] = [
    ['an error status', answer('no', 503), /the server answered 503 Service Unavailable\. Check the server/],
    ['a missing page', answer('no', 404), /answered 404/],
    ['an empty answer', answer(''), /the answer is empty/],
    ['rubbish', answer('<html>'), /it holds "<html>", not a Pod/],
    ['another kind', answer('{"kind":"Status","apiVersion":"v1"}'), /kind: "Status" cannot be run/],
    ['too much', answer(Buffer.alloc(maxManifestBytes + 1, 0x20)), /more than 10485760 bytes/],
    ['a closed connection', (request) => request.socket.destroy(), /the request failed: socket hang up/],
    ['an endless redirect', answer('', 302, { location: '/pods' }), /redirected more than 10 times/],
    ['a redirect to a file', answer('', 302, { location: 'file:///etc/passwd' }), /only http and https/],
    ['a bad pod', answer(list({ metadata: { name: 'a' } })), /items\[0\]\.spec\.containers: Required value/],
  ];
  for (const [name, handler, expected] of failures) {
    it(`go on running through ${name}`, async (t) => {
      const bench = new Bench(t);
      bench.handler = answer(list(pod('a')));
      await bench.start();
      const [running] = bench.last.pods;
      bench.handler = handler;
      const failed = await bench.poll();
      assert.equal(failed?.pods[0], running);
      assert.match(texts(failed!)[0] ?? '', expected);
      assert.match(texts(failed!)[0] ?? '', /The last good version of the pod keeps running\.$/);
      assert.doesNotMatch(texts(failed!)[0] ?? '', /secret/);
      bench.handler = answer(list(pod('a')));
      const recovered = await bench.poll();
      assert.deepEqual(recovered?.errors, []);
      assert.equal(recovered?.pods[0], running);
    });
  }

  it('go on running through silence, which ends after ten seconds', async (t) => {
    const bench = new Bench(t);
    bench.handler = answer(list(pod('a')));
    await bench.start();
    bench.handler = (_request, response) => response.writeHead(200).write('{');
    await bench.clock.advance(20_000);
    while (bench.requests.length < 2) await bench.clock.advance(0);
    await bench.clock.advance(10_000);
    while (bench.updates.length < 2) await bench.clock.advance(0);
    assert.match(texts(bench.last)[0] ?? '', /no complete answer within 10 s/);
    assert.deepEqual(names(bench.last), ['a-n']);
  });

  it('follow a redirect without giving another server the headers', async (t) => {
    const other = createServer((request, response) => {
      assert.equal(request.headers['x-token'], undefined);
      assert.equal(request.headers.authorization, undefined);
      response.end(list(pod('elsewhere')));
    });
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    t.after(() => other.close());
    const bench = new Bench(t);
    bench.handler = answer('', 307, {
      location: `http://127.0.0.1:${(other.address() as AddressInfo).port}/`,
    });
    await bench.start();
    assert.deepEqual(names(bench.last), ['elsewhere-n']);
  });

  it('keep the former version of one that turns bad in a list, and take the others', async (t) => {
    const bench = new Bench(t);
    bench.handler = answer(list(pod('a'), pod('b'), pod('c')));
    await bench.start();
    bench.handler = answer(list({ ...pod('a'), spec: {} }, pod('b', 'new')));
    const update = await bench.poll();
    assert.deepEqual(names(update!), ['b-n', 'a-n']);
    assert.equal(update?.errors[0]?.keepsLastGood, true);
  });

  it('of an earlier run go on while the server is away, but nothing is known of others', async (t) => {
    const bench = new Bench(t);
    bench.handler = answer(list(pod('a')));
    await bench.start();
    const [before] = bench.last.pods;
    await bench.stop();
    bench.handler = answer('', 500);
    await bench.start();
    assert.equal(bench.last.pods[0]?.metadata.uid, before?.metadata.uid);
    assert.equal(bench.last.complete, false);
    bench.handler = answer(list());
    const emptied = await bench.poll();
    assert.deepEqual(emptied?.pods, []);
    assert.equal(emptied?.complete, true);
  });
});
