/** Whatever is sent: an answer or a closed connection, never a crash, never a file outside, and service goes on. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { connect } from 'node:tls';
import fc from 'fast-check';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { accessOf } from './access.ts';
import { examplePath, nodeEndpoints } from './fixtures/endpoint-facts.ts';
import { everybody, startWorld, type World } from './fixtures/node-server-world.ts';
import { parseTarget } from './request-target.ts';
import type { NodeRoute } from './route.ts';
import { RouteTable } from './route-table.ts';
import { sendText } from './router.ts';
import { systemLogRoutes } from './system-logs.ts';

const piece = fc.oneof(
  fc.constantFrom('..', '.', '', '%2e%2e', '%2E.', '%2f', '%5c', '%00', '%', '%zz', '%ff', '%252e%252e'),
  fc.constantFrom(
    'logs',
    'pods',
    'exec',
    'healthz',
    'ns',
    'top',
    'outside',
    'inside',
    'secret',
    'etc',
    'passwd',
  ),
  fc.string({ maxLength: 8, unit: 'grapheme' }),
);
const path = fc.array(piece, { maxLength: 7 }).map((pieces) => `/${pieces.join('/')}`);
const query = fc.oneof(
  fc.constant(''),
  fc.string({ maxLength: 20 }).map((text) => `?${text}`),
);

const echo: NodeRoute = {
  path: '/exec/{namespace}/{pod}/{container}',
  handle: ({ response, parameters, query: asked }) =>
    sendText(response, 200, JSON.stringify([parameters, [...asked]])),
  upgrade({ socket, head }) {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n');
    socket.end(head);
  },
};

describe('targets', () => {
  const table = new RouteTable(nodeEndpoints.map(({ path: at }) => ({ path: at, handle: () => {} })));

  it('are taken apart without surprises', () => {
    fc.assert(
      fc.property(path, query, (at, asked) => {
        const target = parseTarget(at + asked);
        if (!target) return;
        assert.equal(`/${target.segments.join('/')}`, target.path);
        const found = table.find('GET', target);
        if (target.isPlain) {
          assert.ok(!target.segments.includes('..') && !target.path.includes('//'));
        } else {
          assert.equal(found, undefined);
          assert.deepEqual(accessOf('GET', target).subresources, ['proxy']);
        }
      }),
      { numRuns: 2000 },
    );
  });

  it('lead to the endpoint they name, with the rights of this endpoint', () => {
    for (const { method, path: at, subresources } of nodeEndpoints) {
      const target = parseTarget(examplePath(at))!;
      assert.deepEqual([at, accessOf(method, target).subresources], [at, subresources]);
    }
  });
});

describe('requests', () => {
  let world: World;
  let directory: string;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kubelet-ts-hostile-'));
    const root = join(directory, 'log');
    await mkdir(join(root, 'pods'), { recursive: true });
    await writeFile(join(directory, 'secret'), 'TOP SECRET');
    await writeFile(join(root, 'inside'), 'harmless');
    await symlink('/', join(root, 'top'));
    await symlink('../secret', join(root, 'outside'));
    await symlink(directory, join(root, 'pods', 'up'));
    world = await startWorld({
      routes: [
        echo,
        ...systemLogRoutes({
          enabled: true,
          queries: true,
          directory: root,
          searchPath: '',
          clock: new VirtualClock(),
        }),
      ],
      access: everybody,
    });
  });
  after(async () => {
    await world[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  /** Sends bytes as they are, and hangs up if it is told so; what comes back until the connection ends. */
  function send(bytes: string | Buffer, { hangsUp = false } = {}): Promise<string> {
    return new Promise((resolve) => {
      let text = '';
      const socket = connect({
        port: world.server.port,
        host: '127.0.0.1',
        rejectUnauthorized: false,
        ALPNProtocols: ['http/1.1'],
      });
      socket.on('data', (chunk) => (text += chunk.toString('latin1')));
      socket.on('error', () => {}).on('close', () => resolve(text));
      socket.on('secureConnect', () => (hangsUp ? socket.end(bytes) : socket.write(bytes)));
    });
  }
  const alive = async () => assert.equal((await world.ask('/logs/inside')).text, 'harmless');

  it('show no file outside, however it is spelled', async () => {
    await fc.assert(
      fc.asyncProperty(path, query, async (at, asked) => {
        const target = `/logs${at}${asked}`.replaceAll(/[^\x21-\x7e]/gu, (text) => encodeURIComponent(text));
        const text = await send(`GET ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
        assert.match(text, /^HTTP\/1\.1 (200|301|400|404) /);
        assert.ok(!text.includes('TOP SECRET') && !text.includes('root:'), target);
      }),
      { numRuns: 150 },
    );
    await alive();
  });

  it('may carry any headers, and ask for any upgrade', async () => {
    const name = fc.constantFrom(
      'connection',
      'upgrade',
      'content-length',
      'transfer-encoding',
      'expect',
      'host',
      'x',
    );
    const value = fc.oneof(
      fc.constantFrom(
        'upgrade',
        'Upgrade, HTTP2-Settings',
        'h2c',
        'SPDY/3.1',
        'websocket',
        'close',
        '0',
        '-1',
      ),
      fc.constantFrom('chunked', '100-continue', '99999999999', '5'),
      fc.string({ maxLength: 10 }),
    );
    const headers = fc.array(fc.tuple(name, value), { maxLength: 5 });
    const method = fc.constantFrom('GET', 'POST', 'PUT', 'CONNECT', 'PRI', 'HEAD', 'FOO', '');
    const target = fc.constantFrom(
      '/exec/a/b/c',
      '/logs/inside',
      '*',
      '/',
      'http://x/logs/',
      '/exec/a/b/c?\u{1}',
    );
    await fc.assert(
      fc.asyncProperty(method, target, headers, fc.string({ maxLength: 20 }), async (verb, at, all, body) => {
        const lines = all.map(([key, text]) => `${key}: ${text}\r\n`).join('');
        const text = await send(`${verb} ${at} HTTP/1.1\r\nhost: x\r\n${lines}\r\n${body}`, {
          hangsUp: true,
        });
        assert.ok(text === '' || text.startsWith('HTTP/1.1 '), text.slice(0, 80));
      }),
      { numRuns: 150 },
    );
    await alive();
  });

  it('may be no requests at all', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => {
        const text = await send(Buffer.from(bytes), { hangsUp: true });
        assert.ok(text === '' || text.startsWith('HTTP/1.1 400 '), text.slice(0, 80));
      }),
      { numRuns: 50 },
    );
    await alive();
  });
});
