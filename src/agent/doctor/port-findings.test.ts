import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { portFindings } from './port-findings.ts';

test('a port that is taken, with who has it; one of an agent of our own is not', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const wanted = { server: 'the kubelet API', address: '127.0.0.1', port, setting: 'port' };
  const [taken] = await portFindings([wanted], '/no/such/program');
  const own = await portFindings([wanted], process.argv0);
  server.close();
  await once(server, 'close');
  assert.equal(taken?.object, `127.0.0.1:${port}`);
  assert.match(taken.problem, new RegExp(`is taken by process ${process.pid} `));
  assert.deepEqual(own, []);
  assert.deepEqual(await portFindings([wanted], ''), []);
});

test('an address that is not this machine’s', async () => {
  const wanted = { server: 'the health checks', address: '192.0.2.1', port: 10248, setting: 'healthzPort' };
  const [finding] = await portFindings([wanted], '');
  assert.match(finding?.problem ?? '', /cannot be used: .*EADDRNOTAVAIL/);
});
