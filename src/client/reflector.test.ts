import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { settle, VirtualClock } from '../concurrency/virtual-clock.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { type ApiClient, ApiError, type ApiRequest, type Reflector, type WatchEvent } from './api-client.ts';
import { createReflectors } from './reflector.ts';

interface Thing {
  metadata: { name: string; uid: string; resourceVersion: string };
}

/** A server's collection: a history of versions, watches that replay it, and faults on demand. */
class Collection implements ApiClient {
  readonly asked: Record<string, string>[] = [];
  readonly objects = new Map<string, Thing>();
  #history: { version: number; event: WatchEvent<unknown> }[] = [];
  #version = 1;
  #oldest = 0;
  #watches = new Set<{ send(event: WatchEvent<unknown>): void; end(error?: unknown): void }>();
  streams = true;
  /** Fails the next calls. */
  faults: unknown[] = [];

  set(name: string, uid: string): void {
    const version = ++this.#version;
    const thing = { metadata: { name, uid, resourceVersion: String(version) } };
    const type = this.objects.has(name) ? 'MODIFIED' : 'ADDED';
    this.objects.set(name, thing);
    this.#record({ type, object: thing });
  }

  remove(name: string): void {
    const thing = this.objects.get(name);
    if (!thing) return;
    this.objects.delete(name);
    this.#record({
      type: 'DELETED',
      object: { metadata: { ...thing.metadata, resourceVersion: String(++this.#version) } },
    });
  }

  bookmark(): void {
    const object = { metadata: { resourceVersion: String(this.#version) } };
    for (const watch of this.#watches) watch.send({ type: 'BOOKMARK', object });
  }

  /** Sends something that is in no history. */
  garble(event: unknown): void {
    for (const watch of this.#watches) watch.send(event as WatchEvent<unknown>);
  }

  drop(error?: unknown): void {
    for (const watch of this.#watches) watch.end(error);
  }

  /** Forgets the history: whoever watches from before gets 410. */
  compact(): void {
    this.#history = [];
    this.#oldest = this.#version;
  }

  request<T>(request: ApiRequest): Promise<T> {
    this.asked.push({ verb: 'list', ...request.query });
    if (this.faults.length > 0) return Promise.reject(this.faults.shift());
    const all = [...this.objects.values()];
    const start = Number(request.query?.continue ?? 0);
    const end = request.query?.limit === undefined ? all.length : start + 2;
    const next = end < all.length ? String(end) : '';
    const metadata = { resourceVersion: String(this.#version), continue: next };
    return Promise.resolve({ metadata, items: all.slice(start, end) } as T);
  }

  watch<T>(
    request: ApiRequest & { readonly signal: AbortSignal },
    onEvent: (event: WatchEvent<T>) => void,
  ): Promise<void> {
    this.asked.push({ verb: 'watch', ...request.query });
    if (this.faults.length > 0) return Promise.reject(this.faults.shift());
    const initial = request.query?.sendInitialEvents === 'true';
    if (initial && !this.streams)
      return Promise.reject(new ApiError({ status: 422, reason: 'Invalid', message: 'sendInitialEvents' }));
    return new Promise((resolve, reject) => {
      const watch = {
        send: (event: WatchEvent<unknown>) => {
          try {
            onEvent(event as WatchEvent<T>);
          } catch (error) {
            watch.end(error);
          }
        },
        end: (error?: unknown) => {
          this.#watches.delete(watch);
          if (error === undefined) resolve();
          else reject(error);
        },
      };
      request.signal.addEventListener('abort', () => watch.end(request.signal.reason));
      this.#watches.add(watch);
      if (initial) {
        for (const object of this.objects.values()) watch.send({ type: 'ADDED', object });
        const annotations = { 'k8s.io/initial-events-end': 'true' };
        watch.send({
          type: 'BOOKMARK',
          object: { metadata: { resourceVersion: String(this.#version), annotations } },
        });
        return;
      }
      const from = Number(request.query?.resourceVersion);
      if (from < this.#oldest)
        return watch.send({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } });
      for (const { version, event } of this.#history) if (version > from) watch.send(event);
    });
  }

  #record(event: WatchEvent<unknown>): void {
    this.#history.push({ version: this.#version, event });
    for (const watch of this.#watches) watch.send(event);
  }
}

interface Followed extends AsyncDisposable {
  readonly reflector: Reflector<Thing>;
  /** What a consumer knows from the changes alone. */
  readonly told: Map<string, Thing>;
  readonly changes: { set: number; removed: number; synced: boolean }[];
}

function follow(server: ApiClient, clock: VirtualClock): Followed {
  const reflectors = createReflectors({ client: server, clock, random: () => 0.5, logger: silentLogger });
  const told = new Map<string, Thing>();
  const changes: Followed['changes'] = [];
  const reflector = reflectors<Thing>({
    path: '/api/v1/things',
    query: { fieldSelector: 'x=y' },
    onChange({ set, removed, synced }) {
      changes.push({ set: set.length, removed: removed.length, synced });
      for (const thing of removed) {
        assert.equal(
          told.get(thing.metadata.name)?.metadata.uid,
          thing.metadata.uid,
          'removed what was there',
        );
        told.delete(thing.metadata.name);
      }
      for (const thing of set) told.set(thing.metadata.name, thing);
    },
  });
  const controller = new AbortController();
  const running = reflector.run(controller.signal);
  return {
    reflector,
    told,
    changes,
    async [Symbol.asyncDispose]() {
      controller.abort();
      await running;
    },
  };
}

function sorted(things: Iterable<Thing>): Thing[] {
  return [...things].sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
}

for (const streams of [true, false]) {
  describe(streams ? 'with streaming lists' : 'with ordinary lists', () => {
    const start = (): { server: Collection; clock: VirtualClock } => {
      const server = new Collection();
      server.streams = streams;
      return { server, clock: new VirtualClock() };
    };

    test('an empty collection is told of, once', async () => {
      const { server, clock } = start();
      await using followed = follow(server, clock);
      await settle();
      assert.equal(followed.reflector.synced, true);
      assert.deepEqual(followed.changes, [{ set: 0, removed: 0, synced: true }]);
    });

    test('tells the list at once, then every change', async () => {
      const { server, clock } = start();
      for (const name of ['a', 'b', 'c']) server.set(name, `u-${name}`);
      await using followed = follow(server, clock);
      await settle();
      assert.deepEqual(followed.changes, [{ set: 3, removed: 0, synced: true }]);
      server.set('d', 'u-d');
      server.remove('a');
      assert.equal(followed.reflector.get('d')?.metadata.uid, 'u-d');
      assert.equal(followed.reflector.get('a'), undefined);
      assert.equal(followed.changes.length, 3);
    });

    test('goes on from the last version, bookmarks included, without another list', async () => {
      const { server, clock } = start();
      await using followed = follow(server, clock);
      await settle();
      const lists = server.asked.length;
      server.set('a', 'u');
      await clock.advance(2000);
      server.bookmark();
      server.drop();
      server.set('b', 'u2');
      await settle();
      assert.equal(followed.told.size, 2);
      assert.deepEqual(
        server.asked.slice(lists).map(({ verb, resourceVersion }) => [verb, resourceVersion]),
        [['watch', '2']],
      );
    });

    test('lists again after 410, at once, and reports only what has changed', async () => {
      const { server, clock } = start();
      for (const name of ['a', 'b', 'c']) server.set(name, `u-${name}`);
      await using followed = follow(server, clock);
      await clock.advance(2000);
      server.drop();
      server.remove('a');
      server.set('b', 'u-b2');
      server.compact();
      await settle();
      assert.deepEqual(followed.changes.at(-1), { set: 1, removed: 2, synced: true });
      assert.deepEqual(sorted(followed.told.values()), sorted(server.objects.values()));
    });

    test('waits longer and longer while the server refuses', async () => {
      const { server, clock } = start();
      server.faults = Array.from(
        { length: 12 },
        () => new ApiError({ status: 500, reason: 'InternalError', message: 'broken' }),
      );
      await using followed = follow(server, clock);
      await clock.advance(60_000);
      assert.ok(server.asked.length <= 8, `${server.asked.length} calls in a minute`);
      await clock.advance(300_000);
      assert.equal(followed.reflector.synced, true);
    });
  });
}

test('asks for time limits between five and ten minutes, and for bookmarks', async () => {
  const server = new Collection();
  await using _followed = follow(server, new VirtualClock());
  await settle();
  assert.deepEqual(server.asked[0], {
    verb: 'watch',
    fieldSelector: 'x=y',
    allowWatchBookmarks: 'true',
    timeoutSeconds: '450',
    sendInitialEvents: 'true',
    resourceVersionMatch: 'NotOlderThan',
  });
});

test('a server that ignores streaming lists is asked for an ordinary one', async () => {
  const server = new Collection();
  const clock = new VirtualClock();
  const client: ApiClient = {
    request: (request) => server.request(request),
    watch: (request, onEvent) => {
      if (request.query?.sendInitialEvents !== 'true') return server.watch(request, onEvent);
      for (const object of server.objects.values()) onEvent({ type: 'ADDED', object: object as never });
      return new Promise((_resolve, reject) => {
        request.signal.addEventListener('abort', () => reject(request.signal.reason));
      });
    },
  };
  server.set('a', 'u');
  await using followed = follow(client, clock);
  await clock.advance(9_999);
  assert.equal(followed.reflector.synced, false);
  await clock.advance(1);
  assert.deepEqual(followed.changes, [{ set: 1, removed: 0, synced: true }]);
});

test('a refusal is told, and whoever gives up on it leaves nothing behind', async () => {
  const server = new Collection();
  const clock = new VirtualClock();
  const reflectors = createReflectors({ client: server, clock, random: () => 0, logger: silentLogger });
  const controller = new AbortController();
  let refusals = 0;
  const reflector = reflectors<Thing>({
    path: '/api/v1/things',
    onChange: () => {},
    onRefused: () => {
      if (++refusals === 2) controller.abort();
    },
  });
  const running = reflector.run(controller.signal);
  await settle();
  server.faults = [500, 403, 403].map((status) => new ApiError({ status, reason: '', message: 'no' }));
  server.drop();
  await clock.advance(60_000);
  await running;
  assert.equal(refusals, 2);
  assert.equal(clock.nextTimer(), undefined);
});

test('a consumer that throws is not followed', async () => {
  const server = new Collection();
  const reflectors = createReflectors({
    client: server,
    clock: new VirtualClock(),
    random: () => 0,
    logger: silentLogger,
  });
  let calls = 0;
  const reflector = reflectors<Thing>({
    path: '/api/v1/things',
    onChange: () => {
      calls++;
      throw new TypeError('mistake');
    },
  });
  const controller = new AbortController();
  const running = reflector.run(controller.signal);
  await settle();
  server.set('a', 'u');
  server.set('b', 'u');
  assert.equal(calls, 3);
  controller.abort();
  await running;
});

test('whatever happens, the cache ends up as the server is', async () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd', 'e');
  const step = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ kind: fc.constant('set' as const), name, uid: fc.constantFrom('u1', 'u2') }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('remove' as const), name }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('bookmark' as const) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('drop' as const) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('compact' as const) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('turn' as const) }) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('fault' as const),
        status: fc.constantFrom(0, 401, 410, 429, 500),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('garble' as const),
        event: fc.oneof(
          fc.record({
            type: fc.constantFrom('ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR', 'SURPRISE'),
            object: fc.oneof(
              fc.jsonValue(),
              fc.record({ metadata: fc.oneof(fc.jsonValue(), fc.record({ name: fc.jsonValue() })) }),
            ),
          }),
        ),
      }),
    },
  );
  await fc.assert(
    fc.asyncProperty(fc.boolean(), fc.array(step, { maxLength: 25 }), async (streams, steps) => {
      const server = new Collection();
      server.streams = streams;
      const clock = new VirtualClock();
      await using followed = follow(server, clock);
      for (const step of steps) {
        if (step.kind === 'set') {
          // A name is only taken anew once it is free.
          if (server.objects.get(step.name)?.metadata.uid !== step.uid) server.remove(step.name);
          server.set(step.name, step.uid);
        } else if (step.kind === 'remove') server.remove(step.name);
        else if (step.kind === 'bookmark') server.bookmark();
        else if (step.kind === 'drop') server.drop();
        else if (step.kind === 'compact') server.compact();
        else if (step.kind === 'turn') await settle(2);
        else if (step.kind === 'garble') server.garble(step.event);
        else {
          const { status } = step;
          server.faults.push(new ApiError({ status, reason: 'Unknown', message: 'fault' }));
          server.drop();
        }
      }
      for (let n = 0; n < 40 && server.faults.length > 0; n++) await clock.advance(30_000);
      await clock.advance(60_000);
      assert.deepEqual(sorted(followed.reflector.values()), sorted(server.objects.values()));
      assert.deepEqual(sorted(followed.told.values()), sorted(server.objects.values()));
    }),
    { numRuns: 60 },
  );
});
