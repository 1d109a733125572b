import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { everybody, startWorld } from './fixtures/node-server-world.ts';
import { type IntrospectionInput, introspectionRoutes } from './introspection-routes.ts';
import { profileRoutes } from './profile-routes.ts';
import { runningPodsRoutes } from './running-pods.ts';
import { systemLogRoutes } from './system-logs.ts';

describe('what the program tells about itself', () => {
  const clock = new VirtualClock(Date.UTC(2026, 5, 1));
  const verbosities: number[] = [];
  const introspection = (more: Partial<IntrospectionInput> = {}) =>
    introspectionRoutes({
      about: {
        configuration: { kind: 'KubeletConfiguration', staticPodURLHeader: { authorization: ['secret'] } },
        flags: { 'root-dir': '/var/lib/kubelet', v: '2' },
        version: 'v1.36.2',
        startedAt: clock.now() - 90_500,
        setVerbosity: (verbosity) => verbosities.push(verbosity),
      },
      clock,
      changesVerbosity: true,
      showsFlags: true,
      showsStatus: true,
      paths: () => ['/healthz', '/pods'],
      ...more,
    });

  it('shows the configuration, and no secret in it', async () => {
    await using world = await startWorld({ routes: introspection(), access: everybody });
    const { text, headers } = await world.ask('/configz');
    assert.equal(headers['content-type'], 'application/json');
    assert.deepEqual(JSON.parse(text), {
      kubeletconfig: { kind: 'KubeletConfiguration', staticPodURLHeader: { authorization: ['<masked>'] } },
    });
  });

  it('shows flags and status in the form that is asked for', async () => {
    await using world = await startWorld({ routes: introspection(), access: everybody });
    assert.match((await world.ask('/flagz')).text, /^root-dir=\/var\/lib\/kubelet\nv=2$/m);
    const accept = (kind: string) => ({
      headers: { accept: `application/json;v=v1beta1;g=config.k8s.io;as=${kind}` },
    });
    assert.deepEqual(JSON.parse((await world.ask('/flagz', accept('Flagz'))).text), {
      kind: 'Flagz',
      apiVersion: 'config.k8s.io/v1beta1',
      metadata: { name: 'kubelet' },
      flags: { 'root-dir': '/var/lib/kubelet', v: '2' },
    });
    assert.deepEqual(JSON.parse((await world.ask('/statusz', accept('Statusz'))).text), {
      kind: 'Statusz',
      apiVersion: 'config.k8s.io/v1beta1',
      metadata: { name: 'kubelet' },
      startTime: '2026-05-31T23:58:29Z',
      uptimeSeconds: 90,
      goVersion: `node${process.version}`,
      binaryVersion: '1.36.2',
      paths: ['/healthz', '/pods'],
    });
    assert.equal((await world.ask('/flagz', { headers: { accept: 'image/png' } })).status, 406);
    assert.equal((await world.ask('/statusz', accept('Flagz'))).status, 406);
  });

  it('leaves out what is switched off', async () => {
    const routes = introspection({ showsFlags: false, showsStatus: false, changesVerbosity: false });
    await using world = await startWorld({ routes, access: everybody });
    assert.deepEqual([(await world.ask('/flagz')).status, (await world.ask('/statusz')).status], [404, 404]);
    assert.equal((await world.ask('/debug/flags/v', { method: 'PUT', body: '4' })).status, 405);
  });

  it('takes another verbosity', async () => {
    await using world = await startWorld({ routes: introspection(), access: everybody });
    const put = async (body: string) => (await world.ask('/debug/flags/v', { method: 'PUT', body })).status;
    assert.deepEqual([await put('6'), await put('much'), await put('')], [200, 400, 400]);
    assert.equal((await world.ask('/debug/flags/v')).status, 406);
    assert.deepEqual(verbosities, [6]);
  });

  it('lists the pods of the runtime', async () => {
    const metadata = { name: 'a', namespace: 'b', uid: 'c' };
    const routes = runningPodsRoutes(() => [{ metadata, spec: { containers: [{ name: 'x' }] } }]);
    await using world = await startWorld({ routes, access: everybody });
    const { text } = await world.ask('/runningpods/');
    assert.deepEqual(JSON.parse(text).items, [{ metadata, spec: { containers: [{ name: 'x' }] } }]);
    const { status, headers } = await world.ask('/runningpods');
    assert.deepEqual([status, headers.location], [301, '/runningpods/']);
    assert.equal((await world.ask('/runningpods/a')).status, 404);
  });

  it('gives profiles, one at a time', async () => {
    const time = new VirtualClock();
    await using world = await startWorld({
      routes: profileRoutes({ enabled: true, clock: time }),
      access: everybody,
    });
    const first = world.ask('/debug/pprof/profile?seconds=5');
    while (time.nextTimer() === undefined) await new Promise(setImmediate);
    assert.equal((await world.ask('/debug/pprof/allocs')).status, 500);
    await time.advance(5000);
    assert.ok(Array.isArray(JSON.parse((await first).text).nodes));
    const second = world.ask('/debug/pprof/allocs?seconds=1');
    while (time.nextTimer() === undefined) await new Promise(setImmediate);
    await time.advance(1000);
    assert.ok(JSON.parse((await second).text).head);
    assert.equal((await world.ask('/debug/pprof/goroutine')).status, 404);
    assert.equal((await world.ask('/debug/pprof/profile?seconds=0')).status, 400);
    assert.match((await world.ask('/debug/pprof/')).text, /heapsnapshot/);
  });
});

describe('/logs/', () => {
  async function logs(enabled = true) {
    const directory = await mkdtemp(join(tmpdir(), 'kubelet-ts-logs-'));
    const root = join(directory, 'log');
    await mkdir(join(root, 'pods'), { recursive: true });
    await writeFile(join(directory, 'secret'), 'secret');
    await writeFile(join(root, 'a<b>.log'), '0123456789');
    await writeFile(join(root, 'pods', 'p.log'), 'pod');
    await symlink(join(root, 'pods', 'p.log'), join(root, 'inside'));
    await symlink('../secret', join(root, 'outside'));
    await symlink('/', join(root, 'top'));
    await promisify(execFile)('mkfifo', [join(root, 'pipe')]);
    const routes = systemLogRoutes({
      enabled,
      queries: false,
      directory: root,
      searchPath: '',
      clock: new VirtualClock(),
    });
    const world = await startWorld({ routes, access: everybody });
    return {
      ...world,
      root,
      async [Symbol.asyncDispose]() {
        await world[Symbol.asyncDispose]();
        await rm(directory, { recursive: true });
      },
    };
  }

  it('lists, and reads whole or in part', async () => {
    await using world = await logs();
    const listing = (await world.ask('/logs/')).text;
    assert.match(listing, /<a href="\.\/a%3Cb%3E\.log">a&#60;b&#62;\.log<\/a>/);
    assert.match(listing, /<a href="\.\/pods\/">pods\/<\/a>/);
    const part = async (range: string) => {
      const { status, text, headers } = await world.ask('/logs/a%3Cb%3E.log', { headers: { range } });
      return [status, text, headers['content-range']];
    };
    assert.deepEqual(await part(''), [200, '0123456789', undefined]);
    assert.deepEqual(await part('bytes=2-4'), [206, '234', 'bytes 2-4/10']);
    assert.deepEqual(await part('bytes=-3'), [206, '789', 'bytes 7-9/10']);
    assert.deepEqual(await part('bytes=8-99'), [206, '89', 'bytes 8-9/10']);
    assert.equal((await part('bytes=10-'))[0], 416);
    const directory = await world.ask('/logs/pods');
    assert.deepEqual([directory.status, directory.headers.location], [301, 'pods/']);
    await writeFile(join(world.root, 'empty'), '');
    assert.deepEqual(
      [(await world.ask('/logs/empty')).text, (await world.ask('/logs/nothing')).status],
      ['', 404],
    );
  });

  it('shows nothing outside, whatever a path or a link says, and touches no pipe', async () => {
    await using world = await logs();
    assert.equal((await world.ask('/logs/inside')).text, 'pod');
    for (const path of [
      '/logs/outside',
      '/logs/top/etc/passwd',
      '/logs/top',
      '/logs/top/',
      '/logs/../secret',
      '/logs/%2e%2e/secret',
      '/logs/%2e%2e%2fsecret',
      '/logs/..%2fsecret',
      '/logs//etc/passwd',
      '/logs/%2fetc/passwd',
      '/logs/pods/../../secret',
      '/logs/pipe',
      '/logs/pods/p.log/',
      '/logs/pods/p.log/x',
      `/logs/${'x'.repeat(300)}`,
      '/logs/a%00b',
    ]) {
      const { status, text } = await world.ask(path);
      assert.deepEqual([status, path, text.includes('secret')], [404, path, false]);
    }
  });

  it('can be switched off', async () => {
    await using world = await logs(false);
    assert.equal((await world.ask('/logs/inside')).status, 405);
  });
});
