import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { settle, VirtualClock } from '../../concurrency/virtual-clock.ts';
import { podEventObject } from '../../telemetry/events.ts';
import { silentLogger } from '../../telemetry/logger.ts';
import { failed, MemoryApi } from '../fixtures/memory-api.ts';
import { testPod } from '../fixtures/pod-model.ts';
import { ApiEvents, allEvents } from './api-events.ts';

let clock: VirtualClock;
let api: MemoryApi;
let events: ApiEvents;
const start = (limits: { qps?: number; burst?: number; capacity?: number } = {}) => {
  events = new ApiEvents({
    api,
    nodeName: 'node',
    clock,
    logger: silentLogger,
    qps: 50,
    burst: 100,
    ...limits,
  });
};
beforeEach(() => {
  clock = new VirtualClock();
  api = new MemoryApi();
  start();
});

const pod = podEventObject(testPod(), 'spec.containers{web}');
const nth = (n: number) => ({ ...pod, uid: `uid-${n}`, name: `pod-${n}` });
const say = (message: string, object = pod) => events.event(object, 'Normal', 'Pulled', message);
const methods = () => api.requests.map(({ method }) => method);
const all = () => [...api.events.values()];

describe('events in the API server', () => {
  it('look as a kubelet writes them', async () => {
    say('hello');
    await settle();
    const [event] = all();
    assert.match(String(event?.metadata?.['name']), /^web-node\.[0-9a-f]{16}$/);
    assert.deepEqual(
      { ...event, metadata: { namespace: event?.metadata?.['namespace'] } },
      {
        kind: 'Event',
        apiVersion: 'v1',
        metadata: { namespace: 'default' },
        involvedObject: {
          kind: 'Pod',
          apiVersion: 'v1',
          namespace: 'default',
          name: 'web-node',
          uid: 'uid-1',
          fieldPath: 'spec.containers{web}',
        },
        type: 'Normal',
        reason: 'Pulled',
        message: 'hello',
        source: { component: 'kubelet', host: 'node' },
        reportingComponent: 'kubelet',
        reportingInstance: 'node',
        firstTimestamp: '2026-01-01T00:00:00Z',
        lastTimestamp: '2026-01-01T00:00:00Z',
        count: 1,
      },
    );
  });

  it('of a node go by its name, in the namespace for what has none', async () => {
    events.event({ kind: 'Node', name: 'node' }, 'Normal', 'Starting', 'Starting kubelet.');
    await settle();
    assert.equal(api.requests[0]?.path, '/api/v1/namespaces/default/events');
    assert.deepEqual(all()[0]?.['involvedObject'], {
      kind: 'Node',
      apiVersion: 'v1',
      name: 'node',
      uid: 'node',
    });
  });

  it('that happen again are counted, and those that pile up go out as one', async () => {
    say('again');
    await settle();
    await clock.advance(5000);
    for (let i = 0; i < 5; i++) say('again');
    await settle();
    assert.deepEqual(methods(), ['POST', 'PATCH', 'PATCH']);
    assert.equal(all().length, 1);
    assert.equal(all()[0]?.['count'], 6);
    assert.equal(all()[0]?.['lastTimestamp'], '2026-01-01T00:00:05Z');
  });

  it('that the server has forgotten are made anew', async () => {
    say('again');
    await settle();
    api.events.clear();
    say('again');
    await settle();
    assert.deepEqual(methods(), ['POST', 'PATCH', 'POST']);
    assert.equal(all()[0]?.['count'], 2);
  });

  it('are told as one when too many differ only in their message', async () => {
    for (let i = 0; i < 14; i++) say(`message ${i}`);
    await settle(40);
    assert.equal(all().length, 11);
    const last = all().at(-1);
    assert.equal(last?.['message'], '(combined from similar events): message 13');
    assert.equal(last?.['count'], 4);
  });

  it('about one object are 25, then one in five minutes', async () => {
    const other = (i: number) => events.event(pod, 'Normal', `Reason${i}`, 'x');
    for (let i = 0; i < 40; i++) other(i);
    await settle(80);
    assert.equal(all().length, 25);
    await clock.advance(300_000);
    for (let i = 40; i < 45; i++) other(i);
    await settle(20);
    assert.equal(all().length, 26);
    say('another pod is not concerned', nth(2));
    await settle();
    assert.equal(all().length, 27);
  });

  it('go out no faster than allowed', async () => {
    start({ qps: 2, burst: 3 });
    for (let i = 0; i < 10; i++) say('x', nth(i));
    await settle(40);
    assert.equal(api.requests.length, 3);
    await clock.advance(1000);
    assert.equal(api.requests.length, 5);
    await clock.advance(3000);
    assert.equal(all().length, 10);
  });

  it('wait for a server that is away, within bounds, in order and once', async () => {
    start({ capacity: 20 });
    api.down = true;
    for (let i = 0; i < 50; i++) say('x', nth(i));
    await clock.advance(120_000);
    assert.ok(api.requests.length < 100, `${api.requests.length}`);
    api.down = false;
    await clock.advance(20_000);
    assert.ok(all().length >= 20 && all().length <= 24, `${all().length}`);
    assert.equal(clock.nextTimer(), undefined);
  });

  it('are not made twice when the answer was lost', async () => {
    let lost = true;
    const request = api.request.bind(api);
    api.request = async <T>(asked: Parameters<typeof request>[0]): Promise<T> => {
      const answer = await request<T>(asked);
      if (!lost) return answer;
      lost = false;
      throw failed(0, '', 'connection reset');
    };
    say('x');
    await clock.advance(5000);
    assert.equal(all().length, 1);
  });

  it('are dropped when the server refuses them, as in a namespace that ends', async () => {
    api.failure = () =>
      failed(403, 'Forbidden', 'unable to create new content in namespace x because it is being terminated');
    say('x');
    await clock.advance(60_000);
    assert.deepEqual(methods(), ['POST', 'POST'], 'once in each form');
    say('z');
    await clock.advance(60_000);
    assert.equal(api.requests.length, 3);
    api.failure = undefined;
    say('y');
    await settle();
    assert.equal(all().length, 1);
  });

  it('are written as events.k8s.io/v1 where the server takes no others', async () => {
    for (const status of [403, 404]) {
      api = new MemoryApi();
      start();
      api.failure = ({ path }) => (path.startsWith('/api/v1/') ? failed(status, 'NotFound') : undefined);
      say('hello');
      await settle();
      say('hello');
      await settle();
      say('other');
      await settle();
      assert.deepEqual(
        api.requests.map(({ method, path }) => `${method} ${path.replace(/[^/]*\.[0-9a-f]{16}$/, 'name')}`),
        [
          'POST /api/v1/namespaces/default/events',
          'POST /apis/events.k8s.io/v1/namespaces/default/events',
          'PATCH /apis/events.k8s.io/v1/namespaces/default/events/name',
          'POST /apis/events.k8s.io/v1/namespaces/default/events',
        ],
      );
      const [event] = all();
      assert.deepEqual(
        { ...event, metadata: undefined },
        {
          kind: 'Event',
          apiVersion: 'events.k8s.io/v1',
          metadata: undefined,
          regarding: { ...pod, apiVersion: 'v1' },
          type: 'Normal',
          reason: 'Pulled',
          action: 'Pulled',
          note: 'hello',
          reportingController: 'kubelet',
          reportingInstance: 'node',
          eventTime: '2026-01-01T00:00:00.000000Z',
          series: { count: 2, lastObservedTime: '2026-01-01T00:00:00.000000Z' },
        },
      );
      events.close();
    }
  });

  it('find out together which form the server takes', async () => {
    api.failure = ({ path }) => (path.startsWith('/api/v1/') ? failed(404, 'NotFound') : undefined);
    for (const message of ['one', 'two', 'three']) say(message);
    await settle();
    assert.deepEqual(
      all()
        .map(({ note }) => note)
        .sort(),
      ['one', 'three', 'two'],
    );
  });

  it('are tried in the other form once only, by a server that refuses both, and none that takes the first', async () => {
    api.failure = () => failed(403, 'Forbidden');
    say('one');
    await settle();
    say('two');
    await settle();
    const forms = () => api.requests.map(({ path }) => path.split('/')[1]);
    assert.deepEqual(forms(), ['api', 'apis', 'api']);
    // As soon as the node may, in the usual form.
    api.failure = undefined;
    say('three');
    await settle();
    assert.equal(all()[0]?.['apiVersion'], 'v1');

    api = new MemoryApi();
    start();
    say('one');
    await settle();
    api.failure = () => failed(404, 'NotFound');
    say('two');
    await settle();
    assert.deepEqual(forms(), ['api', 'api']);
  });

  it('stop with the agent', async () => {
    events.close();
    say('x');
    await settle();
    assert.equal(api.requests.length, 0);
  });
});

it('allEvents records everywhere', () => {
  const seen: string[] = [];
  const into = (name: string) => ({ event: () => void seen.push(name) });
  allEvents(into('a'), into('b')).event(pod, 'Normal', 'r', 'm');
  assert.deepEqual(seen, ['a', 'b']);
});
