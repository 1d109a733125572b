import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import {
  createTestAuthority,
  type TestAuthority,
  type TestPair,
} from '../../client/fixtures/test-certificates.ts';
import { answerJson, startTestServer, type TestServer } from '../../client/fixtures/test-server.ts';
import { systemClock } from '../../concurrency/clock.ts';
import { clockFindings, clusterFindings } from './cluster-findings.ts';

let directory: string;
let authority: TestAuthority;
let server: TestServer;
let client: TestPair;
before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'doctor-'));
  authority = await createTestAuthority();
  client = await authority.issue({ name: 'system:node:n', organization: 'system:nodes' });
  server = await startTestServer({ pair: await authority.issue({ name: 's', hosts: ['127.0.0.1'] }) });
});
after(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

const base64 = (text: string) => Buffer.from(text).toString('base64');

function kubeconfig(name: string, pair: TestPair, url = server.url, trusted = authority): string {
  const path = join(directory, name);
  writeFileSync(
    path,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'c',
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      clusters: [
        { name: 'c', cluster: { server: url, 'certificate-authority-data': base64(trusted.certificate) } },
      ],
      users: [
        {
          name: 'u',
          user: {
            'client-certificate-data': base64(pair.certificate),
            'client-key-data': base64(pair.key),
          },
        },
      ],
    }),
  );
  return path;
}

async function found(path: string, bootstrapKubeconfig = ''): Promise<string[]> {
  const findings = await clusterFindings({
    kubeconfig: path,
    bootstrapKubeconfig,
    nodeName: 'n',
    machine: { machineId: 'own', systemUuid: 'own-uuid' },
    environment: {},
    clock: systemClock,
    signal: new AbortController().signal,
  });
  return findings.map(({ check, severity, problem }) => `${severity} ${check}: ${problem}`);
}

const nodeOf = (machineID: string) => ({
  metadata: { name: 'n', uid: 'u', resourceVersion: '1' },
  status: { nodeInfo: { machineID, systemUUID: `${machineID}-uuid` } },
});

test('a cluster that knows the node, or does not know it yet', async () => {
  const path = kubeconfig('good', client);
  server.handler = (_request, response) => answerJson(response, 200, nodeOf('own'));
  assert.deepEqual(await found(path), []);
  server.handler = (_request, response) => answerJson(response, 404, { reason: 'NotFound' });
  assert.deepEqual(await found(path), []);
});

test('a kubeconfig that is missing; with a bootstrap kubeconfig the server is asked by that', async () => {
  const missing = join(directory, 'missing');
  assert.match((await found(missing)).join(), /^error kubeconfig: .*there is no such file/);
  server.handler = (_request, response) => answerJson(response, 200, {});
  assert.deepEqual(await found(missing, kubeconfig('bootstrap', client)), []);
  assert.equal(server.requests.at(-1), 'GET /version');
});

test('a certificate that has expired, or is about to', async () => {
  const expiring = async (ms: number) =>
    kubeconfig(
      'expiring',
      await authority.issue({ name: 'system:node:n', notAfter: new Date(Date.now() + ms) }),
    );
  server.handler = (_request, response) => answerJson(response, 200, nodeOf('own'));
  assert.match(
    (await found(await expiring(-3_600_000))).join(),
    /^error client-certificate: .* expired at 20/,
  );
  assert.match(
    (await found(await expiring(3_600_000))).join(),
    /^warning client-certificate: .* expires at 20/,
  );
});

test('a server that is away, not trusted, or refuses', async () => {
  assert.match(
    (await found(kubeconfig('away', client, 'https://127.0.0.1:9'))).join(),
    /^error api-server: .*connection refused/,
  );
  const other = await createTestAuthority('other');
  assert.match(
    (await found(kubeconfig('untrusted', client, server.url, other))).join(),
    /^error api-server: .*not signed by an authority/,
  );
  server.handler = (_request, response) => answerJson(response, 403, { message: 'no' });
  assert.match((await found(kubeconfig('refused', client))).join(), /^error api-server: .*lacks rights/);
});

test('a name that another machine has, alive or silent', async () => {
  const path = kubeconfig('taken', client);
  const lease = (renewed: number) => ({
    metadata: { name: 'n' },
    spec: { renewTime: new Date(renewed).toISOString(), leaseDurationSeconds: 40 },
  });
  const answer = (renewed: number) => {
    server.handler = (request, response) =>
      answerJson(response, 200, request.url?.includes('/leases/') ? lease(renewed) : nodeOf('other'));
  };
  answer(Date.now());
  assert.match((await found(path)).join(), /^error node-name: Another machine \(machine id other\).*alive/);
  answer(Date.now() - 120_000);
  assert.match((await found(path)).join(), /^warning node-name: .*silent; this one takes it over/);
});

test('a clock that differs from the server’s', async () => {
  server.handler = (_request, response) => {
    response.setHeader('date', new Date(Date.now() + 600_000).toUTCString());
    answerJson(response, 200, nodeOf('own'));
  };
  assert.match((await found(kubeconfig('clock', client))).join(), /^error clock: It is \d+ s behind that of/);
  assert.deepEqual(clockFindings('s', undefined), []);
  assert.deepEqual(clockFindings('s', 5000), []);
  assert.equal(clockFindings('s', 60_000)[0]?.severity, 'warning');
  assert.match(clockFindings('s', 60_000)[0]?.problem ?? '', /60 s ahead of/);
});
