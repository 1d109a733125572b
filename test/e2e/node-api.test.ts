/** The node's API as a cluster uses it: through the API server's proxy, by kubectl, and directly with a token. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { after, before, describe, it } from 'node:test';
import { CertificateAuthority } from '../fixtures/apiserver/certificates.ts';
import { type ApiServer, startApiServer } from '../fixtures/apiserver/start-api-server.ts';
import { execSession } from '../fixtures/streams/exec-session.ts';
import { idle, shellPod } from './agent.ts';
import { ClusterAgent } from './cluster-agent.ts';

interface Answer {
  readonly status: number;
  readonly text: string;
}

describe("the node's API", () => {
  let server: ApiServer;
  let agent: ClusterAgent;

  before(async () => {
    server = await startApiServer();
    agent = new ClusterAgent(server);
    writeFileSync(agent.path('client-ca.crt'), server.ca);
    await agent.start({
      configuration: {
        // The API server comes by the node's own address.
        address: '0.0.0.0',
        enableSystemLogQuery: true,
        streamingConnectionIdleTimeout: '4s',
        authentication: { x509: { clientCAFile: agent.path('client-ca.crt') } },
      },
    });
    await agent.nodeReady();
    agent.create(shellPod('web', idle, { dnsPolicy: 'Default' }));
    await agent.podReady('web');
  });
  after(async () => {
    await agent.dispose();
    await server.close();
  });

  function ask(
    path: string,
    options: { token?: string; method?: string; body?: string } = {},
  ): Promise<Answer> {
    const { token, method = 'GET', body = '' } = options;
    return new Promise((resolve, reject) => {
      const asked = request({
        host: '127.0.0.1',
        port: agent.port,
        path,
        method,
        headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
        rejectUnauthorized: false,
        agent: false,
      });
      asked.on('error', reject).on('response', (response: IncomingMessage) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('error', reject).on('end', () => resolve({ status: response.statusCode ?? 0, text }));
      });
      asked.end(body);
    });
  }
  const proxied = (path: string) => agent.kubectl('get', '--raw', `/api/v1/nodes/node/proxy${path}`);

  it('answers the API server, which it knows by certificate', async () => {
    assert.equal(await proxied('/healthz'), 'ok');
    assert.match(await proxied('/healthz?verbose'), /^\[\+\]ping ok\n.*\[\+\]syncloop ok\n/s);
    const { kubeletconfig } = JSON.parse(await proxied('/configz')) as {
      kubeletconfig: { port: number; kind: string };
    };
    assert.deepEqual([kubeletconfig.kind, kubeletconfig.port], ['KubeletConfiguration', agent.port]);
    const names = (text: string) =>
      (JSON.parse(text) as { items: { metadata: { name: string } }[] }).items.map(
        ({ metadata }) => metadata.name,
      );
    assert.deepEqual(names(await proxied('/pods')), ['web']);
    assert.deepEqual(names(await proxied('/runningpods/')), ['web']);
    assert.match(await proxied('/logs/'), /<pre>/);
    assert.match(
      await proxied('/logs/?query=no-such-service'),
      /^\nno-such-service: neither in the journal nor a file below \/var\/log\n$/,
    );
    assert.match(await proxied('/statusz'), /Up \(seconds\)=\d+/);
    assert.match(await proxied('/flagz'), /^hostname-override=node$/m);
    assert.match(await proxied('/metrics'), /^kubernetes_build_info\{/m);
  });

  it('takes nobody it does not know, and nobody without the right', async () => {
    assert.deepEqual(await ask('/pods'), { status: 401, text: 'Unauthorized' });
    assert.equal((await ask('/pods', { token: 'unknown' })).status, 401);
    server.addToken('scraper-token', { name: 'scraper', groups: ['monitoring'] });
    assert.deepEqual(await ask('/metrics', { token: 'scraper-token' }), {
      status: 403,
      text: 'Forbidden (user=scraper, verb=get, resource=nodes, subresource(s)=[metrics])',
    });
    server.addToken('trusted-token', { name: 'trusted', groups: ['monitoring'] });
    server.grants.push({ user: 'trusted', verbs: ['get'], resources: ['nodes/metrics'] });
    assert.equal((await ask('/metrics', { token: 'trusted-token' })).status, 200);
    assert.equal((await ask('/pods', { token: 'trusted-token' })).status, 403);
    assert.equal(
      (await ask('/debug/flags/v', { token: 'trusted-token', method: 'PUT', body: '9' })).status,
      403,
    );
  });

  it('says of a checkpoint what the runtime says of it', async () => {
    server.addToken('admin-token', { name: 'kubernetes-admin', groups: ['system:masters'] });
    const post = (path: string) =>
      ask(`/checkpoint/default/${path}`, { token: 'admin-token', method: 'POST' });
    assert.deepEqual(await post('none/main'), { status: 404, text: 'pod does not exist\n' });
    const { status, text } = await post('web/main');
    // What containerd 1.6 answers; one that can write checkpoints needs CRIU for it.
    if (status !== 200)
      assert.match(`${status} ${text}`, /^500 checkpointing of default\/web\/main failed \(/);
    else assert.match(text, /^\{"items":\["\/.*checkpoint-web_default-main-.*\.tar"\]\}$/);
  });

  it('lets go of a stream that nothing passes on', async () => {
    const [{ user }] = JSON.parse(server.kubeconfigFor('kubernetes-admin')).users;
    const decode = (field: string) => Buffer.from(user[field], 'base64');
    const tls = { cert: decode('client-certificate-data'), key: decode('client-key-data') };
    const path = '/exec/default/web/main?command=sh&command=-c&command=echo%20once;sleep%201000&output=1';
    const begin = performance.now();
    const { stdout, status } = await execSession(`https://127.0.0.1:${agent.port}${path}`, tls);
    const waited = performance.now() - begin;
    assert.deepEqual([stdout, status], ['once\n', '']);
    assert.ok(waited > 3900 && waited < 30_000, `after ${waited} ms`);
  });

  it('sets how much is logged', async () => {
    server.addToken('admin-token', { name: 'kubernetes-admin', groups: ['system:masters'] });
    const put = (body: string) => ask('/debug/flags/v', { token: 'admin-token', method: 'PUT', body });
    assert.equal((await put('5')).status, 200);
    assert.equal((await put('loud')).status, 400);
  });

  it('follows the file of client authorities without a restart', async () => {
    const other = new CertificateAuthority('other', Date.now());
    writeFileSync(agent.path('client-ca.crt'), other.certificate);
    let last = 'it is answered';
    await agent.eventually(
      'the former authority out of force',
      async () =>
        proxied('/healthz').then(
          () => false,
          (error: Error) => /Unauthorized|provide credentials/.test((last = error.message)),
        ),
      () => last,
    );
    writeFileSync(agent.path('client-ca.crt'), server.ca);
    await agent.eventually('the authority in force again', async () =>
      proxied('/healthz').then(
        (text) => text === 'ok',
        () => false,
      ),
    );
  });
});
