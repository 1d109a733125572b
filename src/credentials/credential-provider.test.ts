import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { systemClock } from '../concurrency/clock.ts';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { CredentialPlugin, type CredentialPluginOptions, type PullingPod } from './credential-provider.ts';
import {
  type CredentialProvider,
  type CredentialProviderConfigError,
  parseCredentialProviders,
  readCredentialProviders,
} from './credential-provider-config.ts';
import { ImageKeyring } from './image-keyring.ts';
import { type PluginRun, runPlugin } from './plugin-process.ts';

const v1 = 'credentialprovider.kubelet.k8s.io/v1';
const provider: CredentialProvider = {
  name: 'ecr',
  matchImages: ['r.io', '*.r.io:5000/team'],
  defaultCacheDuration: '10m',
  apiVersion: v1,
};

function setup(options: Partial<CredentialPluginOptions> = {}, response: Record<string, unknown> = {}) {
  const clock = new VirtualClock(0);
  const runs: PluginRun[] = [];
  const answer: Record<string, unknown> = {
    kind: 'CredentialProviderResponse',
    apiVersion: v1,
    cacheKeyType: 'Image',
    auth: { 'r.io': { username: 'u', password: 'p' } },
    ...response,
  };
  const plugin = new CredentialPlugin({
    provider,
    binDirectory: '/bin-dir',
    clock,
    environment: { PATH: '/usr/bin', A: 'old' },
    run: async (run) => {
      runs.push(run);
      await Promise.resolve();
      return JSON.stringify(answer);
    },
    ...options,
  });
  const users = async (image: string, pod?: PullingPod) =>
    (await plugin.credentialsFor(image, pod)).map(({ credential }) => credential.username);
  return { clock, runs, plugin, users };
}

describe('credential provider', () => {
  it('is asked in its protocol, only for images that it is for', async () => {
    const { runs, users } = setup({
      provider: { ...provider, args: ['get'], env: [{ name: 'A', value: 'new' }] },
    });
    assert.deepEqual(await users('other.io/app'), []);
    assert.deepEqual(await users('r.io/app'), ['u']);
    assert.deepEqual(runs, [
      {
        path: '/bin-dir/ecr',
        args: ['get'],
        env: { PATH: '/usr/bin', A: 'new' },
        input: `{"kind":"CredentialProviderRequest","apiVersion":"${v1}","image":"r.io/app"}`,
        timeoutMs: 60_000,
      },
    ]);
  });

  it('credentials for other images than the one asked for are not answered', async () => {
    const { users } = setup({}, { auth: { 'r.io/other': { username: 'u', password: 'p' } } });
    assert.deepEqual(await users('r.io/app'), []);
  });

  for (const [cacheKeyType, asked] of [
    ['Image', 3],
    ['Registry', 2],
    ['Global', 1],
  ] as const) {
    it(`answers are kept for the ${cacheKeyType}`, async () => {
      const { runs, users } = setup({}, { cacheKeyType });
      for (const image of ['r.io/a', 'r.io/b', 'r.io/a', 'x.r.io:5000/team/a']) await users(image);
      assert.equal(runs.length, asked);
    });
  }

  it('answers are kept as long as they say, else as long as the configuration says', async () => {
    for (const [cacheDuration, keptMs] of [
      [undefined, 600_000],
      ['30s', 30_000],
    ] as const) {
      const { clock, runs, users } = setup({}, { cacheDuration });
      await users('r.io/a');
      await clock.advance(keptMs - 1);
      await users('r.io/a');
      assert.equal(runs.length, 1);
      await clock.advance(1);
      await users('r.io/a');
      assert.equal(runs.length, 2);
    }
    const { runs, users } = setup({}, { cacheDuration: '0s' });
    await users('r.io/a');
    await users('r.io/a');
    assert.equal(runs.length, 2);
  });

  it('calls at the same time share one run', async () => {
    const { runs, users } = setup({}, { cacheDuration: '0s' });
    await Promise.all([users('r.io/a'), users('r.io/a'), users('r.io/b')]);
    assert.equal(runs.length, 2);
  });

  for (const [what, response, message] of [
    ['kind', { kind: 'Other' }, /CredentialProviderResponse/],
    ['version', { apiVersion: 'credentialprovider.kubelet.k8s.io/v1beta1' }, /apiVersion/],
    ['cache key type', { cacheKeyType: 'Node' }, /cacheKeyType/],
    ['cache duration', { cacheDuration: 'soon' }, /duration/],
    ['credentials', { auth: { 'r.io': { username: 'u', password: 7 } } }, /texts/],
    ['pattern', { auth: { 'r io': {} } }, /pattern/],
  ] as const) {
    it(`an answer with a wrong ${what} is refused`, async () => {
      const { users } = setup({}, response);
      await assert.rejects(users('r.io/a'), (error: Error) => {
        return error.name === 'CredentialProviderError' && message.test(error.message);
      });
    });
  }

  describe('with a service account token', () => {
    const tokenAttributes = {
      serviceAccountTokenAudience: 'registry',
      cacheType: 'ServiceAccount' as const,
      requireServiceAccount: true,
      requiredServiceAccountAnnotationKeys: ['role'],
      optionalServiceAccountAnnotationKeys: ['extra'],
    };
    const withToken = { ...provider, tokenAttributes };
    const pod = { namespace: 'ns', name: 'web', uid: 'u-1', serviceAccountName: 'builder' };

    it('says so while there is no API server', async () => {
      const { users } = setup({ provider: withToken });
      await assert.rejects(users('r.io/a', pod), /token of service account ns\/builder.*API server/);
      assert.deepEqual(await users('r.io/a', { ...pod, serviceAccountName: undefined }), []);
      assert.deepEqual(await users('r.io/a'), []);
    });

    it('hands it over with the annotations, and keeps accounts apart', async () => {
      let annotations: Record<string, string> = { role: 'r', other: 'o' };
      const { plugin, runs, users } = setup({
        provider: withToken,
        serviceAccounts: {
          account: async (_namespace, name) => ({ uid: `uid-${name}`, annotations }),
          token: async ({ name }, audience) => `${audience}-token-of-${name}`,
        },
      });
      const [found] = await plugin.credentialsFor('r.io/a', pod);
      assert.deepEqual(found?.origin, {
        kind: 'serviceAccount',
        uid: 'uid-builder',
        namespace: 'ns',
        name: 'builder',
      });
      assert.deepEqual(JSON.parse(runs[0]?.input ?? ''), {
        kind: 'CredentialProviderRequest',
        apiVersion: v1,
        image: 'r.io/a',
        serviceAccountToken: 'registry-token-of-web',
        serviceAccountAnnotations: { role: 'r' },
      });
      await users('r.io/a', { ...pod, name: 'web-2' });
      assert.equal(runs.length, 1);
      await users('r.io/a', { ...pod, serviceAccountName: 'other' });
      assert.equal(runs.length, 2);
      annotations = {};
      assert.deepEqual(await users('r.io/a', pod), []);
    });
  });
});

describe('credential provider configuration', () => {
  const yaml = (providers: unknown, version = 'v1') =>
    JSON.stringify({
      apiVersion: `kubelet.config.k8s.io/${version}`,
      kind: 'CredentialProviderConfig',
      providers,
    });
  const problems = (content: string, tokensEnabled = true) =>
    parseCredentialProviders('f', content, tokensEnabled).errors.map(
      ({ field, message }) => `${field}: ${message}`,
    );

  it('every version is read', () => {
    for (const version of ['v1', 'v1beta1', 'v1alpha1']) {
      assert.deepEqual(problems(yaml([provider], version)), []);
    }
  });

  for (const [change, expected] of [
    [{ name: 'a/b' }, /providers\[0\]\.name/],
    [{ name: '..' }, /providers\[0\]\.name/],
    [{ matchImages: [] }, /matchImages/],
    [{ matchImages: ['https://r.io'] }, /matchImages\[0\]/],
    [{ defaultCacheDuration: '-1s' }, /negative/],
    [{ defaultCacheDuration: undefined }, /is required/],
    [{ apiVersion: 'v2' }, /apiVersion/],
    [{ matchimages: [] }, /did you mean matchImages/],
    [{ tokenAttributes: {} }, /serviceAccountTokenAudience/],
    [
      {
        tokenAttributes: {
          serviceAccountTokenAudience: 'a',
          cacheType: 'Token',
          requireServiceAccount: false,
          requiredServiceAccountAnnotationKeys: ['k'],
        },
      },
      /needs requireServiceAccount/,
    ],
  ] as const) {
    it(`refuses ${JSON.stringify(change)}`, () => {
      assert.match(problems(yaml([{ ...provider, ...change }])).join('\n'), expected);
    });
  }

  it('refuses empty lists, other kinds and broken texts', () => {
    assert.match(problems(yaml([])).join(), /at least one/);
    assert.match(problems('kind: Pod').join(), /apiVersion/);
    assert.equal(problems('[').length, 1);
  });
});

describe('real plugins', () => {
  let base: string;
  beforeEach(() => {
    base = mkdtempSync(join(tmpdir(), 'plugins-'));
  });
  afterEach(() => rmSync(base, { recursive: true, force: true }));

  const install = (name: string, script: string) => {
    writeFileSync(join(base, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(base, name), 0o755);
  };
  const configure = (file: string, ...names: string[]) =>
    writeFileSync(
      join(base, file),
      JSON.stringify({
        apiVersion: 'kubelet.config.k8s.io/v1',
        kind: 'CredentialProviderConfig',
        providers: names.map((name) => ({ ...provider, name })),
      }),
    );
  const run = (script: string, timeoutMs = 10_000) => {
    install('p', script);
    return runPlugin({ path: join(base, 'p'), args: [], env: process.env, input: '{"a":1}', timeoutMs });
  };

  it('one program talks to us; the other fails and leaves it its chance', async () => {
    install('bad', 'echo no login >&2; exit 3');
    install(
      'good',
      `grep -q '"image":"r.io/app"' && echo '{"kind":"CredentialProviderResponse","apiVersion":"${v1}","cacheKeyType":"Global","auth":{"*.io":{"username":"plugin","password":"p"}}}'`,
    );
    configure('config.json', 'bad', 'good');
    const errors: string[] = [];
    const keyring = ImageKeyring.open({
      rootDirectory: base,
      providers: { path: join(base, 'config.json'), binDirectory: base, tokensEnabled: true },
      environment: process.env,
      clock: systemClock,
      logger: { ...silentLogger, error: (_message, error) => errors.push((error as Error).message) },
    });
    const found = await keyring.credentialsFor('r.io/app:1');
    assert.deepEqual(
      found.map(({ credential, origin }) => [credential.username, origin.kind]),
      [['plugin', 'node']],
    );
    assert.match(errors.join(), /bad.*exit code 3: no login/);
  });

  it('a program that hangs is killed with what it has started', async () => {
    const began = performance.now();
    await assert.rejects(run('sleep 600 & sleep 600', 100), /no answer within 0.1 s/);
    assert.ok(performance.now() - began < 5000);
  });

  it('a program that never stops writing is ended', async () => {
    await assert.rejects(run('yes'), /more than 1048576 bytes/);
  });

  it('a program that does not read is fine', async () => {
    assert.equal(await run('exec <&-; echo done'), 'done\n');
  });

  it('reads a directory in order and refuses doubles and missing programs', () => {
    install('one', '');
    install('two', '');
    const read = () => readCredentialProviders({ path: base, binDirectory: base, tokensEnabled: true });
    const errors = () => {
      try {
        read();
        return [];
      } catch (error) {
        return (error as CredentialProviderConfigError).errors;
      }
    };
    assert.match(errors().join(), /at least one provider/);
    configure('b.json', 'two');
    configure('a.yaml', 'one');
    writeFileSync(join(base, 'c.txt'), 'not looked at');
    assert.deepEqual(
      read().providers.map(({ name }) => name),
      ['one', 'two'],
    );
    const { hash } = read();
    configure('c.yml', 'one', 'three');
    assert.match(errors().join('\n'), /one is defined already, in .*a\.yaml[^]*three cannot be run/);
    rmSync(join(base, 'c.yml'));
    assert.equal(read().hash, hash);
  });
});
