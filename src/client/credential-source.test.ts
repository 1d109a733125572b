import assert from 'node:assert/strict';
import { chmod, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { MetricsRegistry } from '../telemetry/metrics-registry.ts';
import { credentialSource } from './credential-source.ts';
import { CredentialError } from './credentials.ts';
import { createTestAuthority, type TestAuthority } from './fixtures/test-certificates.ts';
import type { ExecPluginConfig, KubeconfigCluster, KubeconfigUser } from './kubeconfig.ts';

const cluster: KubeconfigCluster = {
  name: 'k',
  server: 'https://10.0.0.1:6443',
  insecureSkipTlsVerify: false,
  disableCompression: false,
  execConfig: { audience: 'nodes' },
};

let directory: string;
let authority: TestAuthority;
let clock: VirtualClock;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'kubelet-client-'));
  authority = await createTestAuthority();
});
after(() => rm(directory, { recursive: true, force: true }));
beforeEach(() => {
  clock = new VirtualClock(Date.now());
});

const source = (user: Omit<KubeconfigUser, 'name'>, metrics?: Metrics) =>
  credentialSource({
    ...(metrics && { metrics }),
    user: { name: 'u', ...user },
    cluster,
    authorityPem: async () => 'CA',
    clock,
    environment: { PATH: process.env.PATH },
  });

/** Replaces a file as a careful writer does. */
async function replace(path: string, content: string): Promise<void> {
  await writeFile(`${path}.new`, content);
  await rename(`${path}.new`, path);
}

describe('token files', () => {
  test('are read again after a while, or at once when the token was refused', async () => {
    const tokenFile = join(directory, 'token');
    await replace(tokenFile, 'one\n');
    const credentials = source({ tokenFile });
    const header = async () => (await credentials.current()).headers.authorization;
    assert.equal(await header(), 'Bearer one');
    await replace(tokenFile, 'two, longer\n');
    assert.equal(await header(), 'Bearer one');
    await clock.advance(60_000);
    assert.equal(await header(), 'Bearer two, longer');
    assert.equal(await credentials.refresh(), false);
    await replace(tokenFile, 'three');
    assert.equal(await credentials.refresh(), true);
    assert.equal(await header(), 'Bearer three');
    await rm(tokenFile);
    await clock.advance(60_000);
    assert.equal(await header(), 'Bearer three', 'the last good one stays in force');
  });

  test('that cannot be read are an error, unless there is a token', async () => {
    const tokenFile = join(directory, 'nowhere');
    await assert.rejects(source({ tokenFile }).current(), (error) => {
      assert.ok(error instanceof CredentialError);
      assert.match(error.message, /token file .*nowhere of user "u" cannot be read: there is no such file/);
      return true;
    });
    assert.equal(
      (await source({ tokenFile, token: 'fixed' }).current()).headers.authorization,
      'Bearer fixed',
    );
  });
});

test('a refused bootstrap token is named by its public half, with the remedy; other tokens are not', async () => {
  const weakness = async (token: string) => {
    const credentials = source({ token });
    await credentials.current();
    return credentials.weakness(clock.now());
  };
  const told = (await weakness('abcdef.0123456789abcdef')) ?? '';
  assert.match(told, /^bootstrap token abcdef has expired.*kubeadm token create/);
  assert.ok(!told.includes('0123456789abcdef'));
  assert.equal(await weakness('some-other-token'), undefined);
});

describe('client certificates', () => {
  test('are taken over when the file changes, and stay the same object until then', async () => {
    const file = join(directory, 'kubelet-client-current.pem');
    const write = async (name: string) => {
      const { certificate, key } = await authority.issue({ name });
      await replace(file, certificate + key);
    };
    await write('a');
    const credentials = source({ clientCertificate: { certificate: { file }, key: { file } } });
    const first = (await credentials.current()).certificate;
    assert.equal((await credentials.current()).certificate, first);
    await write('b');
    assert.equal((await credentials.current()).certificate, first);
    await clock.advance(10_000);
    const second = (await credentials.current()).certificate;
    assert.notEqual(second, first);
    await write('c');
    assert.equal(await credentials.refresh(), true);
    assert.equal(await credentials.refresh(), false);
  });

  test('half replaced leave the last good pair in force', async () => {
    const paths = { certificate: join(directory, 'a.crt'), key: join(directory, 'a.key') };
    const one = await authority.issue({ name: 'one' });
    const two = await authority.issue({ name: 'two' });
    await replace(paths.certificate, one.certificate);
    await replace(paths.key, one.key);
    const credentials = source({
      clientCertificate: { certificate: { file: paths.certificate }, key: { file: paths.key } },
    });
    const first = (await credentials.current()).certificate;
    await replace(paths.certificate, two.certificate);
    await clock.advance(10_000);
    assert.equal((await credentials.current()).certificate, first);
    await replace(paths.key, two.key);
    await clock.advance(10_000);
    assert.equal((await credentials.current()).certificate?.certificate, two.certificate);
  });

  test('that do not fit are refused with the reason', async () => {
    const one = await authority.issue({ name: 'one' });
    const two = await authority.issue({ name: 'two' });
    const pair = (certificate: string, key: string) =>
      source({ clientCertificate: { certificate: { pem: certificate }, key: { pem: key } } }).current();
    await assert.rejects(pair(one.certificate, two.key), /does not belong to the private key beside it/);
    await assert.rejects(pair('nonsense', two.key), /is not a PEM certificate/);
    await assert.rejects(pair(one.certificate, 'nonsense'), /has no readable private key beside it/);
  });

  test('explain why a server may refuse them', async () => {
    const hour = 3_600_000;
    const { certificate, key } = await authority.issue({
      name: 'system:node:a',
      notBefore: new Date(Date.now() - hour),
      notAfter: new Date(Date.now() + hour),
    });
    const credentials = source({
      clientCertificate: { certificate: { pem: certificate }, key: { pem: key } },
    });
    await credentials.current();
    assert.equal(credentials.weakness(Date.now()), undefined);
    assert.match(
      credentials.weakness(Date.now() + 2 * hour)!,
      /\(CN=system:node:a\) expired on .*: renew it, or give --bootstrap-kubeconfig/,
    );
    assert.match(credentials.weakness(Date.now() - 2 * hour)!, /is valid from .*: set this machine's clock/);
  });
});

test('impersonation headers', async () => {
  const { headers } = await source({
    token: 't',
    impersonate: { user: 'jane', groups: ['a', 'b'], extra: { 'example.com/Scope': ['x'] } },
  }).current();
  assert.deepEqual(headers, {
    authorization: 'Bearer t',
    'impersonate-user': 'jane',
    'impersonate-group': ['a', 'b'],
    'impersonate-extra-example.com%2Fscope': ['x'],
  });
});

describe('exec plugins', () => {
  const apiVersion = 'client.authentication.k8s.io/v1';

  /** A shell script that notes each run; `body` prints the answer. */
  async function plugin(body: string, config: Partial<ExecPluginConfig> = {}, metrics?: Metrics) {
    const path = join(directory, `plugin-${Math.random().toString(36).slice(2)}`);
    await writeFile(path, `#!/bin/sh\necho run >> ${path}.runs\n${body}\n`);
    await chmod(path, 0o755);
    const exec: ExecPluginConfig = {
      apiVersion,
      command: path,
      args: ['get-token'],
      env: { EXTRA: 'yes' },
      provideClusterInfo: true,
      ...config,
    };
    const runs = async () => (await readFile(`${path}.runs`, 'utf8')).trim().split('\n').length;
    return { credentials: source({ exec }, metrics), runs, path };
  }
  const answer = (status: object, version = apiVersion) =>
    `printf '%s' '${JSON.stringify({ apiVersion: version, kind: 'ExecCredential', status })}'`;

  test('give a token, are told of the cluster, and run once for many callers', async () => {
    const { credentials, runs, path } = await plugin(
      `printf '%s %s %s' "$1" "$EXTRA" "$KUBERNETES_EXEC_INFO" > "$0.told"; ${answer({ token: 'secret' })}`,
    );
    const all = await Promise.all([1, 2, 3].map(() => credentials.current()));
    for (const { headers } of all) assert.equal(headers.authorization, 'Bearer secret');
    await credentials.current();
    assert.equal(await runs(), 1);
    const [argument, extra, ...info] = (await readFile(`${path}.told`, 'utf8')).split(' ');
    assert.deepEqual([argument, extra], ['get-token', 'yes']);
    assert.deepEqual(JSON.parse(info.join(' ')), {
      kind: 'ExecCredential',
      apiVersion,
      spec: {
        interactive: false,
        cluster: {
          server: 'https://10.0.0.1:6443',
          'certificate-authority-data': Buffer.from('CA').toString('base64'),
          config: { audience: 'nodes' },
        },
      },
    });
  });

  test('run again when what they gave expires or is refused', async () => {
    const expirationTimestamp = new Date(clock.now() + 60_000).toISOString();
    const { credentials, runs } = await plugin(answer({ token: 'a', expirationTimestamp }));
    await credentials.current();
    await clock.advance(59_000);
    await credentials.current();
    assert.equal(await runs(), 1);
    await clock.advance(1000);
    await credentials.current();
    assert.equal(await runs(), 2);
    await clock.advance(2000);
    assert.equal(await credentials.refresh(), false, 'the same token as before');
    assert.equal(await runs(), 3);
  });

  test('may give a certificate', async () => {
    const { certificate, key } = await authority.issue({ name: 'a' });
    const { credentials } = await plugin(
      `cat <<'END'\n${JSON.stringify({ apiVersion, kind: 'ExecCredential', status: { clientCertificateData: certificate, clientKeyData: key } })}\nEND`,
    );
    assert.deepEqual((await credentials.current()).certificate, { certificate, key });
  });

  test('tell how long a certificate was in use when they give another one', async () => {
    const path = join(directory, 'rotating.json');
    const give = async () => {
      const { certificate, key } = await authority.issue({ name: 'a' });
      const status = { clientCertificateData: certificate, clientKeyData: key };
      await writeFile(path, JSON.stringify({ apiVersion, kind: 'ExecCredential', status }));
    };
    const metrics = new MetricsRegistry();
    const { credentials } = await plugin(`cat ${path}`, {}, metrics);
    const ages = async () => {
      const text = await metrics.exposition();
      const name = 'rest_client_exec_plugin_certificate_rotation_age';
      return ['count', 'sum'].map((part) => new RegExp(`^${name}_${part} (\\d+)$`, 'm').exec(text)?.[1]);
    };
    await give();
    await credentials.current();
    await clock.advance(5000);
    await credentials.refresh();
    assert.deepEqual(await ages(), ['0', '0'], 'the same one');
    await give();
    await clock.advance(5000);
    await credentials.refresh();
    assert.deepEqual(await ages(), ['1', '10']);
  });

  const failures: [string, string, RegExp][] = [
    ['fail', 'echo "log in first" >&2; exit 3', /credential plugin .* failed \(exit code 3\): log in first/],
    ['print nonsense', 'echo secret-nonsense', /its output is not JSON$/],
    [
      'speak another version',
      answer({ token: 'a' }, 'client.authentication.k8s.io/v1beta1'),
      /speaks client.authentication.k8s.io\/v1beta1, the kubeconfig asks for/,
    ],
    ['give nothing', answer({}), /neither a token nor a certificate/],
    [
      'give half',
      answer({ clientKeyData: 'x' }),
      /one of clientCertificateData and clientKeyData without the other/,
    ],
    ['expire at nonsense', answer({ token: 'a', expirationTimestamp: 'soon' }), /not an RFC 3339 time/],
  ];
  for (const [name, body, expected] of failures)
    test(`that ${name} are an error`, async () => {
      const { credentials } = await plugin(body);
      await assert.rejects(credentials.current(), (error) => {
        assert.ok(error instanceof CredentialError);
        assert.match(error.message, expected);
        assert.doesNotMatch(error.message, /secret/);
        return true;
      });
    });

  test('that are not installed are an error with the hint', async () => {
    const { credentials } = await plugin('', {
      command: '/nowhere/login',
      installHint: 'run: dnf install login',
    });
    await assert.rejects(
      credentials.current(),
      /plugin \/nowhere\/login is not there: run: dnf install login/,
    );
  });
});
