/**
 * Logs of containers and streams into them as people use them: kubectl, the API server, the agent, containerd.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, createReadStream, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { get, Agent as HttpAgent, type IncomingMessage } from 'node:http';
import { get as getSecurely } from 'node:https';
import { after, before, describe, it } from 'node:test';
import type { Pod } from '../../src/kubernetes/types.ts';
import { type ApiServer, startApiServer } from '../fixtures/apiserver/start-api-server.ts';
import { execSession } from '../fixtures/streams/exec-session.ts';
import { idle, shellPod } from './agent.ts';
import { ClusterAgent } from './cluster-agent.ts';

const kubectlPath = process.env['KUBECTL'] ?? 'kubectl';

/** Counts up once at its first start, fast enough to be rotated, and ends; says so at the second one. */
const counting = (lines: number) => `
  if [ -e /data/done ]; then echo second; while :; do sleep 1; done; fi
  i=0
  while [ $i -lt ${lines} ]; do
    echo "line $i of a log that is long enough to be rotated"; i=$((i+1))
    [ $((i%100)) = 0 ] && sleep 0.25
  done
  touch /data/done; exit 1`;

describe('logs and streams', () => {
  let server: ApiServer;
  let agent: ClusterAgent;
  const children = new Set<ChildProcess>();

  before(async () => {
    server = await startApiServer();
    // What kubectl speaks first; without falling back to SPDY in silence.
    server.proxy.webSockets = 'only';
    agent = new ClusterAgent(server);
    writeFileSync(agent.path('client-ca.crt'), server.ca);
    await agent.start({
      flags: [`--kubeconfig=${agent.path('kubeconfig')}`],
      configuration: {
        address: '127.0.0.1',
        authentication: { x509: { clientCAFile: agent.path('client-ca.crt') } },
        containerLogMaxSize: '20Ki',
        containerLogMaxFiles: 50,
        containerLogMonitorInterval: '3s',
      },
    });
    await agent.nodeReady();
    agent.create(
      shellPod('shell', idle, {
        dnsPolicy: 'Default',
        containers: [
          {
            name: 'main',
            image: agent.image,
            // The runtime reads the two streams apart: lines close together may change places.
            command: ['sh', '-c', `echo started; sleep 1; echo trouble >&2; ${idle}`],
          },
          { name: 'echo', image: agent.image, command: ['cat'], stdin: true },
          { name: 'web', image: agent.image, command: ['sh', '-c', webServer] },
        ],
      }),
    );
    await agent.podReady('shell');
  });
  after(async () => {
    for (const child of children) child.kill('SIGKILL');
    await agent.dispose();
    await server.close();
  });

  const webServer =
    'mkdir /www; dd if=/dev/zero of=/www/big bs=1M count=4; echo ready > /www/index.html; exec httpd -f -p 8080 -h /www';

  /** A kubectl that is talked to while it runs. */
  function start(args: readonly string[], stdin: 'pipe' | 'ignore' = 'ignore') {
    const flags = [`--kubeconfig=${agent.path('admin.kubeconfig')}`, `--cache-dir=${agent.path('cache')}`];
    const child = spawn(kubectlPath, [...flags, ...args], { stdio: [stdin, 'pipe', 'pipe'] });
    children.add(child);
    const out: Buffer[] = [];
    const errors: Buffer[] = [];
    child.stdout!.on('data', (data: Buffer) => out.push(data));
    child.stderr!.on('data', (data: Buffer) => errors.push(data));
    const done = once(child, 'close').then(([code]) => {
      children.delete(child);
      return code as number | null;
    });
    const text = () => Buffer.concat(out).toString();
    return {
      child,
      done,
      out: () => Buffer.concat(out),
      text,
      errors: () => Buffer.concat(errors).toString(),
    };
  }

  it('shows logs', async () => {
    await agent.eventually(
      'both lines written',
      async () => (await agent.kubectl('logs', 'shell', '-c', 'main')) === 'started\ntrouble\n',
    );
    assert.equal(await agent.kubectl('logs', 'shell', '-c', 'main', '--tail=1'), 'trouble\n');
    const timed = await agent.kubectl('logs', 'shell', '-c', 'main', '--timestamps', '--limit-bytes=44');
    assert.match(timed, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}\S+ started/);
    const previous = agent.kubectl('logs', 'shell', '-c', 'main', '--previous');
    await assert.rejects(previous, /previous terminated container "main" in pod "shell" not found/);
  });

  it('follows a log through rotations and a restart, each line once', async () => {
    const lines = 3000;
    agent.create(
      shellPod('counter', counting(lines), {
        dnsPolicy: 'Default',
        volumes: [{ name: 'data', emptyDir: {} }],
        containers: [
          {
            name: 'main',
            image: agent.image,
            command: ['sh', '-c', counting(lines)],
            volumeMounts: [{ name: 'data', mountPath: '/data' }],
          },
        ],
      }),
    );
    await agent.untilObject('counter', (pod) => stateOf(pod)?.running !== undefined);
    const follower = start(['logs', '-f', 'counter']);
    await agent.eventually(
      'the second instance in the followed log',
      async () => follower.text().includes('second'),
      () => follower.text().slice(-200) + follower.errors(),
    );
    follower.child.kill();
    await follower.done;
    const expected = Array.from(
      { length: lines },
      (_, n) => `line ${n} of a log that is long enough to be rotated`,
    );
    assert.deepEqual(follower.text().trimEnd().split('\n'), [...expected, 'second']);

    const pod = agent.object('counter')!;
    const directory = agent.path('logs', 'pods', `default_counter_${pod.metadata.uid}`, 'main');
    const parts = readdirSync(directory).filter((name) => name.startsWith('0.log.'));
    assert.ok(parts.length >= 2 && parts.some((name) => name.endsWith('.gz')), parts.join(' '));
    assert.equal(await agent.kubectl('logs', 'counter', '--previous'), `${expected.join('\n')}\n`);
    const tail = await agent.kubectl('logs', 'counter', '--previous', '--tail=2500');
    assert.equal(tail, `${expected.slice(-2500).join('\n')}\n`);
  });

  it('ends a followed log with the pod', async () => {
    const pod = shellPod('once', 'echo one; sleep 2; echo two', {
      dnsPolicy: 'Default',
      restartPolicy: 'Never',
    });
    agent.create(pod);
    await agent.untilObject('once', (found) => stateOf(found)?.running !== undefined);
    assert.equal(await agent.kubectl('logs', '-f', 'once'), 'one\ntwo\n');
  });

  it('runs commands, with their output and exit status', async () => {
    const exec = ['exec', 'shell', '-c', 'main', '--'];
    assert.equal(await agent.kubectl(...exec, 'echo', 'hello'), 'hello\n');
    const failed = start([...exec, 'sh', '-c', 'echo out; echo err >&2; exit 7']);
    assert.equal(await failed.done, 7);
    assert.equal(failed.text(), 'out\n');
    assert.match(failed.errors(), /^err\n/);
    await assert.rejects(
      agent.kubectl('exec', 'shell', '-c', 'main', '--', 'no-such-program'),
      /no-such-program/,
    );
    const all = await Promise.all(
      Array.from({ length: 10 }, (_, n) => agent.kubectl(...exec, 'echo', `${n}`)),
    );
    assert.deepEqual(
      all,
      Array.from({ length: 10 }, (_, n) => `${n}\n`),
    );
  });

  it('speaks SPDY with an API server that knows nothing else', async () => {
    server.proxy.webSockets = 'refuse';
    try {
      assert.equal(await agent.kubectl('exec', 'shell', '-c', 'main', '--', 'echo', 'hello'), 'hello\n');
      const copy = start(['exec', '-i', 'shell', '-c', 'main', '--', 'wc', '-c'], 'pipe');
      copy.child.stdin!.end('x'.repeat(1_000_000));
      assert.equal(await copy.done, 0, copy.errors());
      assert.equal(copy.text().trim(), '1000000');
    } finally {
      server.proxy.webSockets = 'only';
    }
  });

  it('copies 100 MB through a command and ends it with its input', async () => {
    const copy = start(['exec', '-i', 'shell', '-c', 'main', '--', 'cat'], 'pipe');
    const hash = createHash('sha256');
    const block = randomBytes(1_000_000);
    for (let mb = 0; mb < 100; mb++) {
      hash.update(block);
      if (!copy.child.stdin!.write(block)) await once(copy.child.stdin!, 'drain');
    }
    copy.child.stdin!.end();
    assert.equal(await copy.done, 0, copy.errors());
    const out = copy.out();
    assert.equal(out.length, 100_000_000);
    assert.equal(createHash('sha256').update(out).digest('hex'), hash.digest('hex'));
  });

  it('copies files into a container and back, with flat memory', async () => {
    const blocks = Number(process.env['COPY_MIB'] ?? 64);
    const [sent, back] = [agent.path('sent'), agent.path('back')];
    const hash = createHash('sha256');
    writeFileSync(sent, '');
    for (let n = 0; n < blocks; n++) {
      const block = randomBytes(1024 * 1024);
      hash.update(block);
      appendFileSync(sent, block);
    }
    // The first copy brings what comes to stay.
    const small = agent.path('small');
    writeFileSync(small, randomBytes(8 * 1024 * 1024));
    await agent.kubectl('cp', small, 'shell:/tmp/small', '-c', 'main');
    const memory = residentMib(agent.pid);
    let most = memory;
    const watch = setInterval(() => void (most = Math.max(most, residentMib(agent.pid))), 100);
    const begin = performance.now();
    try {
      await agent.kubectl('cp', sent, 'shell:/tmp/copy', '-c', 'main');
      const into = performance.now();
      await agent.kubectl('cp', 'shell:/tmp/copy', back, '-c', 'main');
      const seconds = (ms: number) => (ms / 1000).toFixed(1);
      console.log(
        `${blocks} MiB in ${seconds(into - begin)} s in, ${seconds(performance.now() - into)} s out, ` +
          `memory ${memory.toFixed()} → ${most.toFixed()} MiB`,
      );
    } finally {
      clearInterval(watch);
    }
    const read = createHash('sha256');
    for await (const chunk of createReadStream(back)) read.update(chunk as Buffer);
    assert.equal(read.digest('hex'), hash.digest('hex'));
    assert.ok(most - memory < 64, `the agent grew from ${memory.toFixed()} to ${most.toFixed()} MiB`);
    for (const path of [sent, back]) rmSync(path);
    await agent.kubectl('exec', 'shell', '-c', 'main', '--', 'rm', '/tmp/copy', '/tmp/small');
  });

  it('tells a terminal its size', async () => {
    const flags = `--kubeconfig=${agent.path('admin.kubeconfig')} --cache-dir=${agent.path('cache')}`;
    const command = `stty rows 41 cols 101; ${kubectlPath} ${flags} exec -it shell -c main -- sh -c 'sleep 1; stty size'`;
    const terminal = spawn('script', ['-qec', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'pipe'] });
    children.add(terminal);
    let text = '';
    terminal.stdout.on('data', (data: Buffer) => void (text += data.toString()));
    const [code] = (await once(terminal, 'close')) as [number];
    children.delete(terminal);
    assert.equal(code, 0, text);
    assert.match(text, /41 101/);
  });

  it('attaches to the process of a container', async () => {
    const attached = start(['attach', '-i', 'shell', '-c', 'echo'], 'pipe');
    attached.child.stdin!.write('are you there?\n');
    await agent.eventually(
      'the echo',
      async () => attached.text().includes('are you there?'),
      () => attached.errors(),
    );
    attached.child.kill();
    await attached.done;
    assert.match(await agent.kubectl('logs', 'shell', '-c', 'echo'), /are you there\?/);
  });

  it('forwards a port under load', async () => {
    const forward = start(['port-forward', 'pod/shell', ':8080']);
    const port = () => Number(/127\.0\.0\.1:(\d+)/.exec(forward.text())?.[1]);
    await agent.eventually('a forwarded port', async () => port() > 0, forward.errors);
    const http = new HttpAgent({ maxSockets: 8 });
    const sizes = await Promise.all(Array.from({ length: 40 }, () => sizeOf(port(), '/big', http)));
    assert.deepEqual(new Set(sizes), new Set([4 * 1024 * 1024]));
    http.destroy();
    forward.child.kill();
    await forward.done;
  });

  it('carries 200 followers and 50 commands at once, and is no larger afterwards', async () => {
    const [{ user }] = JSON.parse(server.kubeconfigFor('kubernetes-admin')).users;
    const decode = (field: string) => Buffer.from(user[field], 'base64');
    const tls = { cert: decode('client-certificate-data'), key: decode('client-key-data') };
    const api = `https://127.0.0.1:${agent.port}`;
    const load = async (followers: number, commands: number): Promise<void> => {
      const options = { ...tls, rejectUnauthorized: false, agent: false } as const;
      const logs = Array.from({ length: followers }, async () => {
        const asked = getSecurely(`${api}/containerLogs/default/shell/main?follow=true`, options);
        const [response] = (await once(asked, 'response')) as [IncomingMessage];
        response.on('error', () => {});
        let text = '';
        for await (const chunk of response.iterator({ destroyOnReturn: false })) {
          text += String(chunk);
          if (text.endsWith('trouble\n')) break;
        }
        return response;
      });
      const url = `${api}/exec/default/shell/main?command=echo&command=hello&output=1`;
      const outcomes = await Promise.all(Array.from({ length: commands }, () => execSession(url, tls)));
      for (const { stdoutBytes, status } of outcomes) {
        assert.equal(stdoutBytes, 'hello\n'.length);
        assert.match(status, /Success/);
      }
      for (const response of await Promise.all(logs)) response.destroy();
    };
    await load(200, 5);
    const [files, memory] = [openFiles(agent.pid), residentMib(agent.pid)];
    await load(200, 50);
    await agent.eventually('as few open files as before', async () => openFiles(agent.pid) <= files);
    const grown = residentMib(agent.pid) - memory;
    assert.ok(grown < 30, `the agent has grown by ${grown.toFixed()} MiB`);
  });

  it('leaves no connection to the runtime behind', async () => {
    const status = agent.object('shell')?.status?.containerStatuses?.find(({ name }) => name === 'main');
    const containerId = (status?.containerID ?? '').replace(/^.*:\/\//, '');
    const request = { containerId, cmd: ['true'], stdin: false, stdout: true, stderr: false, tty: false };
    const { port } = new URL((await agent.runtime.exec(request)).url);
    await agent.eventually('all streams gone', async () => connectionsTo(Number(port), agent.pid) === 0);
  });
});

function stateOf(pod: Pod | undefined) {
  return pod?.status?.containerStatuses?.[0]?.state;
}

async function sizeOf(port: number, path: string, agent: HttpAgent): Promise<number> {
  const [response] = (await once(get({ port, path, agent }), 'response')) as [IncomingMessage];
  let size = 0;
  for await (const chunk of response) size += (chunk as Buffer).length;
  return size;
}

function openFiles(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

function residentMib(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

/** How many connections a process has to a port over IPv4. */
function connectionsTo(port: number, pid: number): number {
  const ending = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const rows = readFileSync(`/proc/${pid}/net/tcp`, 'utf8').trim().split('\n').slice(1);
  const established = '01';
  return rows.filter((row) => {
    const [, , remote = '', state] = row.trim().split(/\s+/);
    return state === established && remote.endsWith(ending);
  }).length;
}
