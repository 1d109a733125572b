import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { KubeconfigError, parseKubeconfig } from './kubeconfig.ts';

const pemText = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';
const data = Buffer.from(pemText).toString('base64');

/** A kubeconfig with these lines in the cluster and the user. */
function config(cluster: string, user: string, rest = ''): string {
  const indent = (text: string) =>
    text
      .split('\n')
      .map((line) => `    ${line}`)
      .join('\n');
  return [
    'apiVersion: v1',
    'kind: Config',
    'current-context: main',
    'contexts:',
    '- name: other',
    '  context: {cluster: nowhere, user: nobody}',
    '- name: main',
    '  context: {cluster: k, user: u}',
    'clusters:',
    '- name: k',
    '  cluster:',
    indent(cluster),
    'users:',
    '- name: u',
    `  user: ${user === '' ? '{}' : ''}`,
    indent(user),
    rest,
  ].join('\n');
}

const server = 'server: https://10.0.0.1:6443';
const parse = (text: string) => parseKubeconfig(text, '/etc/kubernetes/kubelet.conf');

describe('reads', () => {
  test('files relative to the kubeconfig, and inline data before files', () => {
    const { cluster, user, context } = parse(
      config(
        `${server}/\ncertificate-authority: pki/ca.crt\ntls-server-name: kubernetes`,
        `client-certificate: ./a.crt\nclient-certificate-data: ${data}\nclient-key: /keys/a.key\ntokenFile: token`,
      ),
    );
    assert.equal(context, 'main');
    assert.equal(cluster.server, 'https://10.0.0.1:6443');
    assert.deepEqual(cluster.authority, { file: '/etc/kubernetes/pki/ca.crt' });
    assert.equal(cluster.tlsServerName, 'kubernetes');
    assert.deepEqual(user.clientCertificate, { certificate: { pem: pemText }, key: { file: '/keys/a.key' } });
    assert.equal(user.tokenFile, '/etc/kubernetes/token');
  });

  const servers: [string, string][] = [
    ['https://host', 'https://host'],
    ['10.0.0.1:8080', 'http://10.0.0.1:8080'],
    ['https://host:6443/k8s/clusters/c-1/', 'https://host:6443/k8s/clusters/c-1'],
    ['https://[fd00::1]:6443', 'https://[fd00::1]:6443'],
  ];
  for (const [given, expected] of servers)
    test(`server ${given}`, () => {
      assert.equal(parse(config(`server: "${given}"`, '')).cluster.server, expected);
    });

  test('an exec plugin with everything', () => {
    const { user, cluster } = parse(
      config(
        `${server}\nextensions:\n- name: client.authentication.k8s.io/exec\n  extension: {audience: a}`,
        [
          'exec:',
          '  apiVersion: client.authentication.k8s.io/v1',
          '  command: ./bin/login',
          '  args: [get, token]',
          '  env: [{name: A, value: b}]',
          '  installHint: dnf install login',
          '  provideClusterInfo: true',
          '  interactiveMode: IfAvailable',
        ].join('\n'),
      ),
    );
    assert.deepEqual(user.exec, {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: '/etc/kubernetes/bin/login',
      args: ['get', 'token'],
      env: { A: 'b' },
      installHint: 'dnf install login',
      provideClusterInfo: true,
    });
    assert.deepEqual(cluster.execConfig, { audience: 'a' });
  });

  test('impersonation', () => {
    const { user } = parse(
      config(server, 'token: t\nas: jane\nas-groups: [dev]\nas-user-extra: {scope: [a, b]}'),
    );
    assert.deepEqual(user.impersonate, { user: 'jane', groups: ['dev'], extra: { scope: ['a', 'b'] } });
  });

  test('the only context when none is named', () => {
    const text = JSON.stringify({
      contexts: [{ name: 'c', context: { cluster: 'k' } }],
      clusters: [{ name: 'k', cluster: { server: 'https://a' } }],
    });
    assert.equal(parse(text).context, 'c');
  });
});

const refusals: [string, string, RegExp][] = [
  ['an empty file', '', /kubeconfig \/etc\/kubernetes\/kubelet.conf is empty$/],
  ['no YAML', 'a: [', /kubelet.conf: line 1/],
  ['another kind', 'kind: Pod', /line 1: kind is Pod, not Config/],
  ['no context', 'contexts: []', /current-context is missing: name the context/],
  [
    'a context that is not there',
    config(server, '').replace('current-context: main', 'current-context: mian'),
    /line 3: current-context names the context "mian", which is not there \(other, main\)/,
  ],
  [
    'a cluster that is not there',
    config(server, '').replace('name: k', 'name: x'),
    /cluster names "k", which is not in clusters/,
  ],
  ['no server', config('{}', ''), /clusters\[0\]\.cluster\.server is missing/],
  [
    'a server that is none',
    config('server: "http://"', ''),
    /line 12: clusters\[0\]\.cluster\.server is not an address/,
  ],
  ['another protocol', config('server: ftp://a', ''), /must begin with https:\/\/, not ftp:/],
  [
    'trust and no trust',
    config(`${server}\ncertificate-authority: a\ninsecure-skip-tls-verify: true`, ''),
    /remove one of the two/,
  ],
  [
    'data that is no PEM',
    config(`${server}\ncertificate-authority-data: aGFsbG8=`, ''),
    /certificate-authority-data is not the base64 of a PEM/,
  ],
  [
    'a text instead of a flag',
    config(`${server}\ninsecure-skip-tls-verify: "true"`, ''),
    /must be true or false/,
  ],
  [
    'a socks proxy',
    config(`${server}\nproxy-url: socks5://p:1080`, ''),
    /proxy-url must begin with http:\/\/ or https/,
  ],
  [
    'a password',
    config(server, 'username: admin\npassword: hunter2'),
    /users\[0\]\.user\.username is not supported: no API server accepts basic/,
  ],
  [
    'an auth provider',
    config(server, 'auth-provider: {name: gcp}'),
    /auth-provider is not supported: Kubernetes removed it; use an exec plugin/,
  ],
  [
    'a certificate without key',
    config(server, `client-certificate-data: ${data}`),
    /has a client-certificate and no client-key/,
  ],
  [
    'a key without certificate',
    config(server, `client-key-data: ${data}`),
    /has a client-key and no client-certificate/,
  ],
  [
    'a plugin that needs a terminal',
    config(
      server,
      'exec: {apiVersion: client.authentication.k8s.io/v1, command: a, interactiveMode: Always}',
    ),
    /interactiveMode is Always, but a node agent has no terminal/,
  ],
  [
    'a plugin that does not say',
    config(server, 'exec: {apiVersion: client.authentication.k8s.io/v1, command: a}'),
    /interactiveMode is missing/,
  ],
  [
    'an old plugin version',
    config(server, 'exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: a}'),
    /apiVersion must be one of/,
  ],
  ['groups without user', config(server, 'as-groups: [a]'), /user\.as is missing/],
];

describe('refuses, naming file, line and field:', () => {
  for (const [name, text, expected] of refusals)
    test(name, () => {
      assert.throws(
        () => parse(text),
        (error) => {
          assert.ok(error instanceof KubeconfigError);
          assert.match(error.message, expected);
          assert.doesNotMatch(error.message, /hunter2/);
          return true;
        },
      );
    });
});

test('an old plugin version may leave the terminal out', () => {
  const exec = 'exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: aws}';
  assert.equal(parse(config(server, exec)).user.exec?.command, 'aws');
});

test('any text ends in a kubeconfig or a KubeconfigError', () => {
  const field = fc.constantFrom(
    'name',
    'server',
    'cluster',
    'user',
    'context',
    'exec',
    'token',
    'command',
    'as',
  );
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4 },
      fc.jsonValue({ maxDepth: 1 }),
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.dictionary(field, tie('tree'), { maxKeys: 4 }),
    ),
  }));
  const top = fc.dictionary(
    fc.constantFrom('contexts', 'clusters', 'users', 'current-context', 'kind'),
    fc.oneof(tree, fc.constant('main')),
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        top.map((value) => JSON.stringify(value)),
      ),
      (text) => {
        try {
          parse(text);
        } catch (error) {
          assert.ok(error instanceof KubeconfigError, String(error));
        }
      },
    ),
  );
});
