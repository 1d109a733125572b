import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { portHolder } from './port-holder.ts';

test('names who listens on a port, and nobody once it is free', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const holder = await portHolder(port);
  server.close();
  await once(server, 'close');
  assert.equal(holder?.pid, process.pid);
  assert.equal(holder.commandLine[0], process.argv0);
  assert.equal(await portHolder(port), undefined);
});
