/** What keeps a node from joining: each is said once, with what to do, and is tried again until it works. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { membershipOf } from '../../src/agent/cluster/join-cluster.ts';
import type { MachineFacts } from '../../src/agent/node-facts.ts';
import { type Clock, systemClock } from '../../src/concurrency/clock.ts';
import { loadConfiguration } from '../../src/config/load-configuration.ts';
import { resolveSettings } from '../../src/config/settings.ts';
import { errorText } from '../../src/telemetry/error-text.ts';
import { silentEvents } from '../../src/telemetry/events.ts';
import { type LogFields, type Logger, silentLogger } from '../../src/telemetry/logger.ts';
import { MetricsRegistry } from '../../src/telemetry/metrics-registry.ts';
import { type ApiServer, startApiServer } from '../fixtures/apiserver/start-api-server.ts';

const facts: MachineFacts = {
  hostname: 'node',
  cpus: 2,
  onlineCpus: '0-1',
  memory: 2 ** 33,
  swaps: [],
  hugePages: [],
  maxProcesses: 1000,
  cgroupVersion: 2,
  swapAccounting: false,
  addresses: ['192.0.2.1'],
  kernelRelease: '6.1.0',
  appArmor: false,
  selinux: false,
  pageSize: 4096,
};

let server: ApiServer;
let directory: string;
let said: string[];
let clock: Clock;
let end: AbortController;
let running: Promise<void>;
const file = (name: string) => path.join(directory, name);

beforeEach(async () => {
  server = await startApiServer();
  directory = mkdtempSync(path.join(tmpdir(), 'kubelet-ts-joining-'));
  said = [];
  clock = systemClock;
  end = new AbortController();
  running = Promise.resolve();
});
afterEach(async () => {
  end.abort();
  await running.catch(() => {});
  await server.close();
  rmSync(directory, { recursive: true });
});

function join(...flags: string[]): void {
  const note = (message: string, ...rest: unknown[]) => {
    said.push(
      [message, ...rest.map((part) => (part instanceof Error ? errorText(part) : JSON.stringify(part)))].join(
        ' ',
      ),
    );
  };
  const logger: Logger = {
    ...silentLogger,
    warn: (message: string, fields?: LogFields) => note(message, fields),
    error: (message: string, error: unknown, fields?: LogFields) => note(message, error, fields),
    with: () => logger,
  };
  const loaded = loadConfiguration(
    [`--kubeconfig=${file('kubeconfig')}`, `--cert-dir=${file('pki')}`, '--node-ip=127.0.0.1', ...flags],
    {
      cwd: '/',
      readFile: () => {
        throw new Error('no files here');
      },
      readDirectory: () => [],
    },
  );
  assert.ok(loaded.ok, JSON.stringify(loaded));
  const membership = membershipOf({
    settings: resolveSettings(loaded),
    featureEnabled: () => false,
    clock,
    logger,
    metrics: new MetricsRegistry(),
    nodeName: 'node',
    facts,
    events: silentEvents,
  });
  running = membership.run(end.signal).finally(() => membership.close());
}

const kubeconfig = (text: string) => writeFileSync(file('kubeconfig'), text);
const registered = () => server.admin.watchUntil('nodes', 'node', (node) => node !== undefined);

async function until(what: () => boolean): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (!what()) {
    assert.ok(Date.now() < deadline, said.join('\n'));
    await pause(20);
  }
}

/** Waits for a line that fits; the trouble then goes on for a while without another line about it. */
async function saidOnce(pattern: RegExp): Promise<void> {
  const deadline = Date.now() + 10_000;
  const lines = () => said.filter((line) => pattern.test(line));
  while (lines().length === 0) {
    assert.ok(Date.now() < deadline, `nothing like ${pattern}, but:\n${said.join('\n')}`);
    await pause(20);
  }
  await pause(1500);
  assert.equal(lines().length, 1, said.join('\n'));
}

describe('what keeps a node from joining', () => {
  it('a kubeconfig that is missing, until it is there', async () => {
    join();
    await saidOnce(
      /cannot join.*there is no such file: correct --kubeconfig, or give --bootstrap-kubeconfig/,
    );
    kubeconfig(server.kubeconfigFor('system:node:node'));
    await registered();
  });

  it('a kubeconfig that is broken', async () => {
    kubeconfig('clusters: [');
    join();
    await saidOnce(/cannot join its cluster yet.*kubeconfig/);
  });

  it('a server that is not there, until it is', async () => {
    const back = await server.faults.refuseConnections();
    kubeconfig(server.kubeconfigFor('system:node:node'));
    join();
    await saidOnce(/API server.*(refused|ECONNREFUSED)/);
    await back();
    await registered();
  });

  it('a server certificate that nobody here trusts', async () => {
    const other = await startApiServer();
    const text = server.kubeconfigFor('system:node:node');
    const theirs = Buffer.from(other.ca).toString('base64');
    await other.close();
    kubeconfig(text.replace(Buffer.from(server.ca).toString('base64'), theirs));
    join();
    await saidOnce(/certificate.*certificate-authority/);
  });

  it('a client certificate that has expired', async () => {
    kubeconfig(server.kubeconfigFor('system:node:node', { lifeMs: -1000 }));
    join();
    await saidOnce(/expired/);
  });

  it('credentials of somebody who is no node, until they may', async () => {
    kubeconfig(server.kubeconfigFor('somebody'));
    join();
    await saidOnce(/Cannot register the node.*system:node:node.*group.*system:nodes/);
    server.grants.push({ user: 'somebody' });
    await registered();
  });

  it('a clock that differs from the server’s', async () => {
    kubeconfig(server.kubeconfigFor('system:node:node'));
    clock = { ...systemClock, now: () => Date.now() + 90_000 };
    join();
    await saidOnce(/clock of this machine.*9\d s ahead of that of the API server.*timedatectl/);
    await registered();
  });

  it('missing rights to services, until they are given', async () => {
    const give = server.faults.fail(403, 'Forbidden', { resource: 'services' });
    kubeconfig(server.kubeconfigFor('system:node:node'));
    join();
    await registered();
    await saidOnce(/cannot (list|watch) services.*O=system:nodes.*cluster role system:node/);
    give();
    await until(() =>
      server.requests.some(({ resource, status }) => resource === 'services' && status === 200),
    );
  });

  it('a certificate request that is denied', async () => {
    server.signer.client = 'deny';
    server.addToken('abc.def', {
      name: 'system:bootstrap:abc',
      groups: ['system:bootstrappers', 'system:authenticated'],
    });
    writeFileSync(file('bootstrap'), server.kubeconfigFor('bootstrap', { token: 'abc.def' }));
    join(`--bootstrap-kubeconfig=${file('bootstrap')}`);
    await saidOnce(/denied/);
  });

  it('a bootstrap token that is no longer valid, until there is one that is', async () => {
    const bootstrap = (token: string) =>
      writeFileSync(file('bootstrap'), server.kubeconfigFor('bootstrap', { token }));
    bootstrap('abcdef.0123456789abcdef');
    join(`--bootstrap-kubeconfig=${file('bootstrap')}`);
    await saidOnce(/bootstrap token abcdef has expired.*kubeadm token create/);
    server.addToken('fedcba.0123456789abcdef', {
      name: 'system:bootstrap:fedcba',
      groups: ['system:bootstrappers', 'system:authenticated'],
    });
    bootstrap('fedcba.0123456789abcdef');
    await registered();
  });

  it('a serving certificate that nobody approves, with the command that does', async (t) => {
    const own = Object.values(networkInterfaces()).flatMap((found) => found ?? []);
    const address = own.find(({ internal, family }) => !internal && family === 'IPv4')?.address;
    if (address === undefined) return t.skip('this machine has no address that a node could have');
    server.signer.serving = 'off';
    kubeconfig(server.kubeconfigFor('system:node:node'));
    // Approvers get 15 s before anything is said; here everything that waits is over ten times sooner.
    clock = { ...systemClock, after: (ms, callback) => systemClock.after(ms / 10, callback) };
    join('--rotate-server-certificates', `--node-ip=${address}`);
    await saidOnce(/kubectl certificate approve csr-/);
  });

  it('a name that another machine has and uses', async () => {
    const nodeInfo = { machineID: 'another', systemUUID: 'another' };
    server.admin.create({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'node' },
      status: { nodeInfo },
    });
    server.admin.create({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'node', namespace: 'kube-node-lease' },
      spec: { holderIdentity: 'node', leaseDurationSeconds: 40, renewTime: new Date().toISOString() },
    });
    kubeconfig(server.kubeconfigFor('system:node:node'));
    join();
    await saidOnce(/in use by another machine.*--hostname-override/);
  });
});
