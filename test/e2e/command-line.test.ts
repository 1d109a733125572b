import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { Agent, idle, shellPod, surroundings } from './agent.ts';

describe('--runonce', () => {
  const agent = new Agent();
  after(() => agent.dispose());

  it('runs every manifest, tells what became of each, and exits 0 when all ran', async () => {
    agent.write('server', shellPod('server', idle));
    agent.write('task', shellPod('task', 'exit 0', { restartPolicy: 'Never' }));
    agent.write('service', shellPod('service', idle, { restartPolicy: 'OnFailure' }));
    await agent.start({ flags: ['--runonce'] });
    assert.equal(await agent.ended(), 0, agent.output);
    assert.match(agent.output, /default\/server-node\tran\trunning/);
    assert.match(agent.output, /default\/service-node\tran\trunning/);
    assert.match(agent.output, /default\/task-node\tran\tsucceeded/);
    assert.equal(await agent.ours(), 3, 'the pods are left running');
  });

  it('exits 1 when one did not', async () => {
    agent.write('failing', shellPod('failing', 'exit 5', { restartPolicy: 'Never' }));
    await agent.start({ flags: ['--runonce'] });
    assert.equal(await agent.ended(), 1, agent.output);
    assert.match(agent.output, /default\/failing-node\tfailed/);
  });
});

describe('a runtime that is not there', () => {
  const agent = new Agent();
  after(() => agent.dispose());

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`is waited for, healthy, until ${signal} ends that at once and in order`, async () => {
      agent.write('waiting', shellPod('waiting', idle));
      const containerRuntimeEndpoint = `unix://${agent.path('none.sock')}`;
      await agent.start({ configuration: { containerRuntimeEndpoint } });
      assert.equal(await agent.health(), 'ok');
      await agent.eventually('said to wait', async () =>
        agent.log.includes('Waiting for the container runtime'),
      );
      const asked = Date.now();
      assert.equal(await agent.kill(signal), 0, agent.log);
      // Far below the two seconds that answers under way would be given.
      assert.ok(Date.now() - asked < 1500, `took ${Date.now() - asked} ms`);
      assert.match(agent.log, /The node agent was stopped while it started/);
      assert.equal(await agent.health(), undefined);
      assert.equal(await agent.ours(), 0);
      assert.deepEqual(readdirSync(agent.path('logs')), []);
      assert.equal(existsSync(agent.path('root', 'pods')), false);
    });
  }
});

describe('a manifest URL', () => {
  let pods: unknown[] = [shellPod('remote', idle)];
  let seen: string | undefined;
  const server = createServer((request, response) => {
    seen = request.headers['x-token']?.toString();
    response.end(JSON.stringify({ kind: 'PodList', apiVersion: 'v1', items: pods }));
  });
  const agent = new Agent();
  after(async () => {
    await agent.dispose();
    server.close();
  });

  it('brings pods and takes them away, asked with the configured headers', async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await agent.start({
      configuration: {
        staticPodURL: `http://127.0.0.1:${port}/pods`,
        staticPodURLHeader: { 'X-Token': ['abc'] },
        httpCheckFrequency: '1s',
      },
    });
    const pod = await agent.ready('remote');
    assert.equal(pod.metadata.annotations?.['kubernetes.io/config.source'], 'http');
    assert.equal(seen, 'abc');
    pods = [shellPod('other', idle)];
    await agent.ready('other');
    await agent.gone('remote');
    pods = [];
  });
});

describe('kubelet doctor', () => {
  const { endpoint, directory } = surroundings();
  const folder = mkdtempSync(join(directory, 'doctor-'));
  after(() => rmSync(folder, { recursive: true, force: true }));

  /** What it finds with this configuration, as `error check`, and its exit code. */
  async function examine(configuration: object): Promise<{ code: number; found: string[]; text: string }> {
    const config = join(folder, 'config.json');
    writeFileSync(
      config,
      JSON.stringify({
        apiVersion: 'kubelet.config.k8s.io/v1beta1',
        kind: 'KubeletConfiguration',
        failCgroupV1: false,
        failSwapOn: false,
        containerRuntimeEndpoint: endpoint,
        enableServer: false,
        healthzPort: 0,
        ...configuration,
      }),
    );
    const program = join(import.meta.dirname, '../../dist/kubelet');
    const args = ['doctor', '-o', 'json', '--config', config, '--root-dir', join(folder, 'none')];
    const { code, stdout } = await new Promise<{ code: number; stdout: string }>((resolve) => {
      execFile(program, args, (error, out) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout: out });
      });
    });
    const { findings } = JSON.parse(stdout) as { findings: Record<'severity' | 'check', string>[] };
    const found = findings.map(({ severity, check }) => `${severity} ${check}`);
    return { code, found, text: stdout };
  }

  it('finds nothing that stops a node with a runtime, and makes nothing', async () => {
    const { code, found, text } = await examine({});
    assert.deepEqual(
      found.filter((finding) => finding.startsWith('error')),
      [],
      text,
    );
    assert.equal(code, 0);
    assert.equal(existsSync(join(folder, 'none')), false);
  });

  it('names a runtime that is not there', async () => {
    const { code, found, text } = await examine({ containerRuntimeEndpoint: `unix://${folder}/none.sock` });
    assert.equal(code, 1);
    assert.ok(found.includes('error runtime-socket'), text);
    assert.match(text, /none\.sock/);
  });

  it('names who has a port', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const { code, found, text } = await examine({ healthzPort: port });
    server.close();
    assert.equal(code, 1);
    assert.deepEqual(
      found.filter((finding) => finding.endsWith('port')),
      ['error port'],
    );
    assert.match(text, new RegExp(`taken by process ${process.pid} `));
  });
});
