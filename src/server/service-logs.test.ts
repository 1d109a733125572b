/** `/logs/?query=`: services from a journal that is made up, and from files. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { everybody, startWorld } from './fixtures/node-server-world.ts';
import { readSystemLogQuery } from './system-log-query.ts';
import { systemLogRoutes } from './system-logs.ts';

/** Knows two units, and tells with what it was called. */
const journal = `#!/bin/sh
if [ "$1" = --field=_SYSTEMD_UNIT ]; then echo kubelet.service; echo ssh.socket; exit; fi
for one; do echo "$one" >> "$(dirname "$0")/calls"; done
case "$*" in *slow*) echo begun; sleep 60;; esac
case "$*" in *much*) yes line;; esac
echo "$# arguments"
echo complaint >&2
exit 1
`;

async function world({ withJournal = true, queries = true } = {}) {
  const clock = new VirtualClock();
  const directory = await mkdtemp(join(tmpdir(), 'kubelet-ts-service-logs-'));
  const logs = join(directory, 'log');
  const bin = join(directory, 'bin');
  await mkdir(join(logs, 'squid'), { recursive: true });
  await mkdir(bin);
  if (withJournal) {
    await writeFile(join(bin, 'journalctl'), journal);
    await chmod(join(bin, 'journalctl'), 0o755);
  }
  await writeFile(join(directory, 'secret.log'), 'secret');
  await writeFile(join(logs, 'plain'), 'plain\n');
  await writeFile(join(logs, 'dotted.log'), 'dotted\n');
  await writeFile(join(logs, 'empty.log'), '');
  await writeFile(join(logs, 'squid', 'squid.log'), 'ink\n');
  await symlink(join(directory, 'secret.log'), join(logs, 'leak.log'));
  const routes = systemLogRoutes({
    enabled: true,
    queries,
    directory: logs,
    searchPath: withJournal ? `${bin}:/usr/bin:/bin` : bin,
    clock,
  });
  const started = await startWorld({ routes, access: everybody });
  return {
    ...started,
    clock,
    calls: async () => (await readFile(join(bin, 'calls'), 'utf8')).trimEnd().split('\n'),
    async [Symbol.asyncDispose]() {
      await started[Symbol.asyncDispose]();
      await rm(directory, { recursive: true });
    },
  };
}

describe('/logs/?query=', { timeout: 30_000 }, () => {
  it('asks the journal for what it knows, and files for the rest', async () => {
    await using node = await world();
    const { status, text, headers } = await node.ask('/logs/?query=kubelet&query=squid');
    assert.deepEqual([status, headers['content-type']], [200, 'text/plain;charset=UTF-8']);
    assert.deepEqual(text.split('\n').sort(), ['', '4 arguments', 'complaint', 'ink']);
    assert.deepEqual(await node.calls(), [
      '--utc',
      '--no-pager',
      '--output=short-precise',
      '--unit=kubelet.service',
    ]);
  });

  it('hands every option on as an argument of its own, whatever is in it', async () => {
    await using node = await world();
    const query = new URLSearchParams({
      query: 'ssh.socket',
      sinceTime: '2026-03-01T02:00:00.5+02:00',
      untilTime: '2026-03-01T00:00:10Z',
      tailLines: '7',
      pattern: '$(touch /tmp/x); "a b"',
      boot: '-1',
    });
    assert.equal((await node.ask(`/logs/?${query.toString()}`)).status, 200);
    assert.deepEqual((await node.calls()).slice(3), [
      '--since=@1772323200',
      '--until=@1772323210',
      '--lines=7',
      '--unit=ssh.socket',
      '--grep=$(touch /tmp/x); "a b"',
      '--case-sensitive=false',
      '--boot=-1',
    ]);
  });

  it('finds the files of services, and none outside', async () => {
    await using node = await world({ withJournal: false });
    const text = async (query: string) => (await node.ask(`/logs/?query=${query}`)).text;
    assert.equal(await text('plain&query=dotted&query=squid&query=empty'), 'plain\ndotted\nink\n');
    assert.match(await text('nothing'), /^\nnothing: neither in the journal nor a file below \/\S+\n$/);
    assert.match(await text('leak'), /^\nleak: neither in the journal nor a file below \/\S+\n$/);
    assert.match(await text('plain&tailLines=3'), /^\nplain: not in the journal.*ask without options\n$/);
    assert.equal(await text('/squid/squid.log'), 'ink\n');
    for (const path of [
      '../secret.log',
      '/../secret.log',
      '/leak.log',
      '..\\secret.log',
      '/squid',
      '/nothing',
      '/squid/../../secret.log',
    ]) {
      const answer = await node.ask(`/logs/?query=${encodeURIComponent(path)}`);
      assert.equal(answer.status, 406, path);
      assert.match(answer.text, /^query=".*": no such file below \/\S+\n$/);
    }
  });

  it('refuses what cannot be read with 400, and what makes no sense with 406', async () => {
    await using node = await world({ withJournal: false });
    const cases: [string, number, RegExp][] = [
      ['query=', 400, /^query= names nothing; give a service/],
      ['query=%20%20', 400, /^query= names nothing/],
      ['query=a&sinceTime=yesterday', 400, /^sinceTime="yesterday" is not a time such as/],
      ['query=a&sinceTime=2026-13-01T00:00:00Z', 400, /^sinceTime=.* is not a time/],
      [
        'query=a&untilTime=1&boot=x',
        400,
        /^untilTime="1" is not a time.*\nboot="x" is not a whole number\n$/,
      ],
      ['query=a&tailLines=many', 400, /^tailLines="many" is not a whole number/],
      ['tailLines=3', 406, /^tailLines without a service; add query=NAME/],
      ['query=a&tailLines=100001', 406, /^tailLines=100001: from 0 to 100000 lines/],
      ['query=a&tailLines=-1', 406, /^tailLines=-1: from 0 to 100000 lines/],
      ['query=a&boot=1', 406, /^boot=1: 0 is this boot/],
      [
        'query=a&sinceTime=2026-03-01T00:00:01Z&untilTime=2026-03-01T00:00:00Z',
        406,
        /^untilTime is before sinceTime/,
      ],
      ['query=a&pattern=(', 406, /^pattern: /],
      ['query=a&pattern=%00', 406, /NUL/],
      ['query=a&query=b&query=c&query=d&query=e', 406, /^query names 5 services; ask for 4 at a time/],
      ['query=a&query=/b', 406, /^query names a file and a service/],
      ['query=/a&query=/b', 406, /^query names 2 files/],
      ['query=/plain&tailLines=1', 406, /^a file is sent as it is; leave tailLines away/],
      ['query=/a%00b', 406, /^query=.*no such file/],
      ['query=--file%3Dx', 406, /^query="--file=x": names of services are made of/],
      ['query=..', 406, /names of services are made of/],
      ['query=a%20b', 406, /names of services are made of/],
      [`query=${'x'.repeat(257)}`, 406, /a name has up to 256/],
    ];
    for (const [query, status, text] of cases) {
      const answer = await node.ask(`/logs/?${query}`);
      assert.equal(answer.status, status, `${query}: ${answer.text}`);
      assert.match(answer.text, text);
    }
  });

  it('never lets anything through that could be an option or a way out', () => {
    const name = fc.oneof(fc.string(), fc.constantFrom('a', '-a', '../b', 'kubelet.service', '.', 'a@b:c'));
    fc.assert(
      fc.property(
        fc.array(name, { maxLength: 6 }),
        fc.option(fc.string()),
        fc.option(fc.string()),
        (names, lines, boot) => {
          const parameters = new URLSearchParams(names.map((text): [string, string] => ['query', text]));
          if (lines !== null) parameters.set('tailLines', lines);
          if (boot !== null) parameters.set('boot', boot);
          const query = readSystemLogQuery(parameters);
          if (query?.kind !== 'services') return;
          assert.ok(query.services.length <= 4);
          for (const service of query.services)
            assert.match(service, /^[a-zA-Z0-9_.:@][a-zA-Z0-9_.:@-]{0,255}$/);
          for (const service of query.services) assert.doesNotMatch(service, /^\.+$/);
          if (query.tailLines !== undefined) assert.ok(query.tailLines >= 0 && query.tailLines <= 100_000);
          if (query.boot !== undefined) assert.ok(query.boot <= 0);
        },
      ),
    );
  });

  it('compresses for who wants that', async () => {
    await using node = await world({ withJournal: false });
    const pieces: Buffer[] = [];
    const headers = { 'accept-encoding': 'gzip' };
    const { port } = node.server;
    await new Promise<void>((resolve, reject) => {
      get(
        { port, path: '/logs/?query=plain', headers, rejectUnauthorized: false, agent: false },
        (response) => {
          assert.equal(response.headers['content-encoding'], 'gzip');
          response.on('data', (piece: Buffer) => pieces.push(piece)).on('end', resolve);
        },
      ).on('error', reject);
    });
    assert.equal(gunzipSync(Buffer.concat(pieces)).toString(), 'plain\n');
  });

  it('ends when time is up, and says so', async () => {
    await using node = await world();
    const { port } = node.server;
    const path = '/logs/?query=kubelet&pattern=slow';
    const asked = get({ port, path, rejectUnauthorized: false, agent: false });
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    response.setEncoding('utf8');
    const [begun] = (await once(response, 'data')) as [string];
    await node.clock.advance(29_999);
    const ended = response.toArray();
    await node.clock.advance(1);
    assert.equal(begun + (await ended).join(''), 'begun\n\nnot all of it: no end within 30 s\n');
  });

  it('ends the journal with its reader, and answers four at once', async () => {
    await using node = await world();
    const readers = Array.from({ length: 4 }, () => {
      const { port } = node.server;
      const path = '/logs/?query=kubelet&pattern=much';
      const asked = get({ port, path, rejectUnauthorized: false, agent: false });
      const begun = new Promise<void>((resolve) => {
        asked.on('response', (response) => response.once('data', () => response.pause() && resolve()));
      });
      return { begun, leave: () => asked.on('error', () => {}).destroy() };
    });
    await Promise.all(readers.map(({ begun }) => begun));
    const refused = await node.ask('/logs/?query=kubelet');
    assert.deepEqual([refused.status, refused.headers['retry-after']], [429, '1']);
    for (const { leave } of readers) leave();
    for (;;) if ((await node.ask('/logs/?query=kubelet')).status === 200) break;
  });

  it('is a listing where queries are not wanted', async () => {
    await using node = await world({ queries: false });
    const { status, text } = await node.ask('/logs/?query=kubelet');
    assert.equal(status, 200);
    assert.match(text, /<pre>/);
  });
});
