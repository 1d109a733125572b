import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { type Logger, silentLogger } from '../telemetry/logger.ts';
import { DockerConfigFiles, parseDockerConfig } from './docker-config.ts';
import { secretCredentials } from './pull-secrets.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');
const config = (auths: object) => JSON.stringify({ auths });

describe("docker's configuration", () => {
  it('reads every form of a credential', () => {
    const { entries, problems } = parseDockerConfig(
      config({
        'a.io': { auth: base64('user:pass:word') },
        'b.io': { username: 'u', password: 'p', email: 'e@x' },
        'c.io': { auth: base64('wins:over'), username: 'u', password: 'p' },
        'd.io': { identitytoken: 'refresh' },
        'e.io': { registrytoken: 'bearer' },
        'f.io': {},
      }),
      'config.json',
    );
    assert.deepEqual(problems, []);
    assert.deepEqual(
      entries.map(({ pattern, credential }) => [
        pattern.key,
        ...Object.values(credential).filter((part) => part !== ''),
      ]),
      [
        ['a.io', 'user', 'pass:word'],
        ['b.io', 'u', 'p'],
        ['c.io', 'wins', 'over'],
        ['d.io', 'refresh'],
        ['e.io', 'bearer'],
      ],
    );
  });

  it('one bad entry leaves the others, and no message quotes a secret', () => {
    const { entries, problems } = parseDockerConfig(
      config({
        'a.io': { auth: base64('no-colon-hunter2') },
        'b.io': { auth: '!!hunter2!!' },
        'c.io': 'hunter2',
        'd.io': { username: 7 },
        'e e': {},
        'f.io': { username: 'u', password: 'p' },
      }),
      'config.json',
    );
    assert.equal(entries.length, 1);
    assert.equal(problems.length, 5);
    assert.ok(problems.every((problem) => !problem.includes('hunter2')));
    for (const text of ['hunter2', '[]', '{"auths":7}']) {
      assert.throws(() => parseDockerConfig(text, 'config.json'), { name: 'DockerConfigError' });
    }
  });

  it('secrets of both types, in their order', () => {
    const meta = (name: string) => ({ name, namespace: 'ns', uid: `u-${name}` });
    const problems: string[] = [];
    const found = secretCredentials(
      'r.io/app',
      [
        {
          metadata: meta('old'),
          type: 'kubernetes.io/dockercfg',
          data: { '.dockercfg': base64(JSON.stringify({ 'r.io': { username: 'old', password: 'p' } })) },
        },
        { metadata: meta('broken'), type: 'kubernetes.io/dockercfg', data: { '.dockercfg': base64('{') } },
        { metadata: meta('opaque'), type: 'Opaque', data: { '.dockerconfigjson': base64(config({})) } },
        {
          metadata: meta('new'),
          type: 'kubernetes.io/dockerconfigjson',
          data: { '.dockerconfigjson': base64(config({ 'r.io': { username: 'new', password: 'p' } })) },
        },
      ],
      (secret, problem) => problems.push(`${secret}: ${problem}`),
    );
    assert.deepEqual(
      found.map(({ credential, origin }) => [credential.username, origin]),
      [
        ['old', { kind: 'secret', uid: 'u-old', namespace: 'ns', name: 'old' }],
        ['new', { kind: 'secret', uid: 'u-new', namespace: 'ns', name: 'new' }],
      ],
    );
    assert.deepEqual(problems, ['ns/broken: it is not JSON']);
  });
});

describe("docker's files on the node", () => {
  let base: string;
  beforeEach(() => {
    base = mkdtempSync(join(tmpdir(), 'docker-config-'));
    mkdirSync(join(base, 'home/.docker'), { recursive: true });
    mkdirSync(join(base, 'root'));
  });
  afterEach(() => rmSync(base, { recursive: true, force: true }));

  const open = (logger: Logger = silentLogger) =>
    new DockerConfigFiles({ rootDirectory: join(base, 'root'), homeDirectory: join(base, 'home'), logger });
  const users = (files: DockerConfigFiles) => files.lookup('r.io/app').map(({ username }) => username);
  const login = (path: string, username: string) =>
    writeFileSync(join(base, path), config({ 'r.io': { username, password: 'p' } }));

  it('a file that comes, changes or goes counts at once', () => {
    const files = open();
    assert.deepEqual(users(files), []);
    writeFileSync(join(base, 'home/.dockercfg'), '{"r.io":{"username":"ancient","password":"p"}}');
    assert.deepEqual(users(files), ['ancient']);
    login('home/.docker/config.json', 'home');
    assert.deepEqual(users(files), ['home']);
    login('root/config.json', 'root');
    assert.deepEqual(users(files), ['root']);
    login('root/config.json', 'changed');
    assert.deepEqual(users(files), ['changed']);
    rmSync(join(base, 'root/config.json'));
    assert.deepEqual(users(files), ['home']);
  });

  it('a broken file is told once and the next one is taken; a pipe hangs nobody', () => {
    const told: unknown[] = [];
    const files = open({ ...silentLogger, warn: (_message, fields) => told.push(fields?.['problem']) });
    login('home/.docker/config.json', 'home');
    writeFileSync(join(base, 'root/config.json'), '{');
    assert.deepEqual([users(files), users(files)], [['home'], ['home']]);
    assert.deepEqual(told, ['it is not JSON']);
    rmSync(join(base, 'root/config.json'));
    execFileSync('mkfifo', [join(base, 'root/config.json')]);
    assert.deepEqual(users(files), ['home']);
  });
});
