import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect as connectHttp2 } from 'node:http2';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { systemClock } from '../concurrency/clock.ts';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { MetricsRegistry } from '../telemetry/metrics-registry.ts';
import { authorityNamed, byCluster, everybody, startWorld } from './fixtures/node-server-world.ts';
import { RequestMeter } from './request-meter.ts';
import type { NodeRoute } from './route.ts';
import { sendText } from './router.ts';

const echo: NodeRoute = {
  methods: ['GET', 'POST'],
  path: '/echo/{one}/{two}',
  async handle({ response, parameters, user, body }) {
    sendText(response, 200, `${JSON.stringify(parameters)} ${user?.name} ${String(await body())}`);
  },
};
const pods: NodeRoute = {
  methods: ['GET'],
  path: '/pods',
  handle: ({ response }) => sendText(response, 200, 'pods'),
};
const exec: NodeRoute = {
  methods: ['GET', 'POST'],
  path: '/exec/{namespace}/{pod}/{container}',
  debugging: true,
  handle: ({ response }) => sendText(response, 400, 'an upgrade is required'),
  upgrade({ socket, head, query, refuse }) {
    if (!query.has('command')) return refuse(400, 'no command', { 'retry-after': '1' });
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n');
    socket.write(head);
    socket.pipe(socket);
  },
};
const routes = [echo, pods, exec];

describe("the node's API", () => {
  it('answers who is allowed, with what stands in the path and in the body', async () => {
    await using world = await startWorld({ routes, access: everybody });
    const { status, text } = await world.ask('/echo/a%20b/c?x=1', { method: 'POST', body: 'hello' });
    assert.deepEqual([status, text], [200, '{"one":"a b","two":"c"} system:anonymous hello']);
    assert.equal((await world.ask('/echo/a')).status, 404);
    const wrong = await world.ask('/echo/a/b', { method: 'PUT' });
    assert.deepEqual([wrong.status, wrong.headers.allow], [405, 'GET, POST']);
  });

  it('serves HTTP/2 as well', async () => {
    await using world = await startWorld({ routes, access: everybody });
    const session = connectHttp2(`https://127.0.0.1:${world.server.port}`, { rejectUnauthorized: false });
    const stream = session.request({ ':path': '/echo/a/b', ':method': 'POST' });
    stream.end('two');
    let text = '';
    for await (const chunk of stream.setEncoding('utf8')) text += chunk;
    assert.equal(text, '{"one":"a","two":"b"} system:anonymous two');
    session.close();
  });

  it('counts every request, whatever becomes of it', async () => {
    const metrics = new MetricsRegistry();
    const meter = new RequestMeter({ routes, metrics, clock: systemClock });
    await using world = await startWorld({ routes, server: { meter } });
    world.reviews.tokens.set('reader', { name: 'reader', groups: [] });
    world.reviews.grants.add('reader get pods');
    assert.equal((await world.ask('/pods', { token: 'reader' })).status, 200);
    assert.equal((await world.ask('/pods')).status, 401);
    assert.equal((await world.ask('/nothing', { token: 'reader' })).status, 403);
    const headers = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-protocol': 'v5.channel.k8s.io',
    };
    assert.equal((await world.ask('/exec/a/b/c?command=x', { headers })).status, 401);
    const text = await metrics.exposition();
    const of = (path: string, isLong = false) =>
      `{long_running="${isLong}",method="GET",path="${path}",server_type="readwrite"}`;
    for (const line of [
      `kubelet_http_requests_total${of('pods')} 2`,
      `kubelet_http_requests_total${of('other')} 1`,
      `kubelet_http_requests_total${of('exec', true)} 1`,
      `kubelet_http_requests_duration_seconds_count${of('pods')} 2`,
      `kubelet_http_inflight_requests${of('pods')} 0`,
      'kubelet_websocket_streaming_requests_total{subresource="exec"} 1',
    ]) {
      assert.ok(text.includes(`${line}\n`), `${line} in\n${text}`);
    }
  });

  it('takes no more of a body than anybody needs', async () => {
    await using world = await startWorld({ routes, access: everybody });
    const { status } = await world.ask('/echo/a/b', { method: 'POST', body: 'x'.repeat(70_000) });
    assert.equal(status, 413);
  });

  it('lets certificates, tokens and anonymous callers in as a kubelet does', async () => {
    await using world = await startWorld({ routes, access: { ...byCluster, anonymous: true } });
    const { reviews, authority } = world;
    const pair = await authority.issue({ name: 'admin', organization: 'ops' });
    const stranger = await (await authorityNamed('other')).issue({ name: 'admin' });
    reviews.tokens.set('good', { name: 'scraper', groups: ['g'] });
    for (const name of ['admin', 'scraper', 'system:anonymous']) reviews.grants.add(`${name} * *`);
    const seen = async (options: Parameters<typeof world.ask>[1]) => {
      const { status, text } = await world.ask('/echo/a/b', options);
      return status === 200 ? text.split(' ')[1] : status;
    };
    assert.equal(await seen({ pair }), 'admin');
    assert.equal(await seen({ token: 'good' }), 'scraper');
    assert.equal(await seen({}), 'system:anonymous');
    assert.equal(await seen({ token: 'bad' }), 401);
    assert.equal(await seen({ pair: stranger }), 401);
    assert.equal(await seen({ pair: stranger, token: 'good' }), 'scraper');
    assert.equal(await seen({ pair, token: 'bad' }), 'admin');
  });

  it('asks for the narrow right first, then for the wide one, and remembers the answers', async () => {
    const clock = new VirtualClock(Date.now());
    await using world = await startWorld({ routes, clock });
    const { reviews } = world;
    reviews.tokens.set('t', { name: 'u', groups: [] });
    assert.deepEqual(
      [(await world.ask('/pods', { token: 't' })).text, (await world.ask('/pods', { token: 't' })).status],
      ['Forbidden (user=u, verb=get, resource=nodes, subresource(s)=[pods proxy])', 403],
    );
    assert.deepEqual(reviews.asked.splice(0), ['token t', 'u get pods', 'u get proxy']);
    reviews.grants.add('u get proxy');
    await clock.advance(30_000);
    assert.equal((await world.ask('/pods', { token: 't' })).text, 'pods');
    assert.deepEqual(reviews.asked.splice(0), ['u get pods', 'u get proxy']);
    await clock.advance(90_000);
    assert.equal((await world.ask('/pods', { token: 't' })).text, 'pods');
    assert.deepEqual(reviews.asked.splice(0), ['token t', 'u get pods']);
  });

  it('does not let in whom it cannot ask about, and says that apart', async () => {
    await using world = await startWorld({ routes });
    const pair = await world.authority.issue({ name: 'admin' });
    world.reviews.failure = new Error('no API server');
    assert.equal((await world.ask('/pods', { token: 't' })).status, 401);
    const { status, text } = await world.ask('/pods', { pair });
    assert.deepEqual(
      [status, text],
      [500, 'Authorization error (user=admin, verb=get, resource=nodes, subresource(s)=[pods proxy])'],
    );
    world.reviews.failure = undefined;
    world.reviews.grants.add('admin * *');
    assert.equal((await world.ask('/pods', { pair })).status, 200);
  });

  it('grants upgrades only where a route has them, and only to whom it may', async () => {
    await using world = await startWorld({ routes });
    world.reviews.tokens.set('t', { name: 'u', groups: [] });
    const headers = { connection: 'Upgrade', upgrade: 'SPDY/3.1' };
    const path = '/exec/ns/pod/c?command=ls';
    assert.equal((await world.ask(path, { headers })).status, 401);
    assert.equal((await world.ask(path, { headers, token: 't' })).status, 403);
    world.reviews.grants.add('u get proxy').add('u get stats').add('u get pods');
    world.reviews.tokens.set('t2', { name: 'u', groups: ['again'] });
    assert.equal((await world.ask(path, { headers, token: 't2' })).status, 101);
    const refused = await world.ask('/exec/ns/pod/c', { headers, token: 't2' });
    assert.deepEqual(
      [refused.status, refused.text, refused.headers['retry-after']],
      [400, 'no command', '1'],
    );
    assert.equal((await world.ask('/pods', { headers, token: 't2' })).text, 'pods');
    assert.equal((await world.ask('/nowhere', { headers, token: 't2' })).status, 404);
  });

  it('says so where debugging is switched off', async () => {
    await using world = await startWorld({ routes, access: everybody, server: { debuggingHandlers: false } });
    const { status, text } = await world.ask('/exec/ns/pod/c?command=ls', {
      headers: { connection: 'Upgrade', upgrade: 'SPDY/3.1' },
    });
    assert.deepEqual([status, text], [405, 'Debug endpoints are disabled.\n']);
    assert.equal((await world.ask('/pods')).status, 200);
  });

  it('trusts another authority from when its file has changed, also on connections that stand', async () => {
    const clock = new VirtualClock(Date.now());
    await using world = await startWorld({
      routes,
      clock,
      access: { ...byCluster, authorization: { mode: 'AlwaysAllow' } },
    });
    const other = await authorityNamed('other');
    const pair = await world.authority.issue({ name: 'before' });
    const fresh = await other.issue({ name: 'after' });
    const standing = connectHttp2(`https://127.0.0.1:${world.server.port}`, {
      rejectUnauthorized: false,
      cert: pair.certificate,
      key: pair.key,
    });
    const askStanding = async () => {
      const [headers] = (await once(standing.request({ ':path': '/pods' }).resume(), 'response')) as [
        { ':status': number },
      ];
      return headers[':status'];
    };
    assert.deepEqual([await askStanding(), (await world.ask('/pods', { pair: fresh })).status], [200, 401]);
    await writeFile(join(world.directory, 'client-ca.crt'), 'rubbish');
    await clock.advance(60_000);
    assert.equal(await askStanding(), 200);
    await writeFile(join(world.directory, 'client-ca.crt'), other.certificate);
    for (let n = 0; n < 200 && (await askStanding()) === 200; n++) await clock.advance(60_000);
    assert.equal(await askStanding(), 401);
    assert.equal((await world.ask('/pods', { pair: fresh })).status, 200);
    assert.equal((await world.ask('/pods', { pair })).status, 401);
    standing.close();
  });

  it('shows no certificate before there is one, and the newest to new connections', async () => {
    await using world = await startWorld({
      routes,
      access: everybody,
      server: { serving: { kind: 'told' } },
    });
    await assert.rejects(world.ask('/pods'), /alert handshake failure|ECONNRESET/);
    const shown = async () => {
      const socket = connectTls({ port: world.server.port, host: '127.0.0.1', rejectUnauthorized: false });
      await once(socket, 'secureConnect');
      const { CN } = socket.getPeerCertificate().subject;
      socket.destroy();
      return CN;
    };
    for (const name of ['first', 'second']) {
      world.server.serveWith(await world.authority.issue({ name, hosts: ['127.0.0.1'] }));
      assert.equal(await shown(), name);
    }
  });
});
