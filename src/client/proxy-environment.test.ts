import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Environment, ProxyVariableError, proxyFromEnvironment } from './proxy-environment.ts';

const way = (server: string, environment: Environment) =>
  proxyFromEnvironment(new URL(server), environment)?.href;

test('the variable for the scheme of the server counts, in either case', () => {
  const both = { HTTPS_PROXY: 'http://secure:3128', http_proxy: 'plain:8080' };
  assert.equal(way('https://10.0.0.1:6443', both), 'http://secure:3128/');
  assert.equal(way('http://10.0.0.1:8080', both), 'http://plain:8080/');
  assert.equal(way('https://10.0.0.1:6443', { HTTP_PROXY: 'http://p:1' }), undefined);
  assert.equal(way('https://10.0.0.1:6443', { https_proxy: 'https://p:1' }), 'https://p:1/');
  assert.equal(
    way('https://10.0.0.1:6443', { HTTPS_PROXY: 'http://up', https_proxy: 'http://low' }),
    'http://up/',
  );
  assert.equal(way('https://10.0.0.1:6443', { HTTPS_PROXY: ' ' }), undefined);
});

test('this machine is reached straight', () => {
  const environment = { HTTPS_PROXY: 'http://p:1' };
  for (const host of ['localhost', '127.0.0.1', '127.8.8.8', '[::1]'])
    assert.equal(way(`https://${host}:6443`, environment), undefined, host);
});

test('what NO_PROXY exempts', () => {
  const cases: [noProxy: string, server: string, straight: boolean][] = [
    ['*', 'https://api.example.com', true],
    ['example.com', 'https://api.example.com', true],
    ['example.com', 'https://example.com', true],
    ['example.com', 'https://badexample.com', false],
    ['.example.com', 'https://api.example.com', true],
    ['.example.com', 'https://example.com', false],
    ['*.example.com', 'https://API.Example.com', true],
    ['example.com:6443', 'https://example.com:6443', true],
    ['example.com:6443', 'https://example.com', false],
    ['example.com:443', 'https://example.com', true],
    ['10.0.0.0/8', 'https://10.1.2.3:6443', true],
    ['10.0.0.0/8', 'https://11.1.2.3:6443', false],
    ['10.0.0.0/33, 10.0.0.0/x', 'https://10.1.2.3', false],
    ['fd00::/8', 'https://[fd00::1]:6443', true],
    ['fd00::0:1', 'https://[fd00::1]:6443', true],
    ['[fd00::1]:6443', 'https://[fd00::1]:6443', true],
    ['10.1.2.3', 'https://10.1.2.3', true],
    ['10.1.2.3:6443', 'https://10.1.2.3:6443', true],
    ['10.1.2.3:6443', 'https://10.1.2.3:443', false],
    [' , other, 10.1.2.3 ', 'https://10.1.2.3', true],
    ['.', 'https://10.1.2.3', false],
    ['', 'https://10.1.2.3', false],
  ];
  for (const [NO_PROXY, server, straight] of cases) {
    const found = way(server, { HTTPS_PROXY: 'http://p:1', NO_PROXY });
    assert.equal(found === undefined, straight, `${server} with NO_PROXY=${NO_PROXY}`);
  }
});

test('what is no usable proxy is refused, without its password', () => {
  const refused = (value: string, why: RegExp) => {
    assert.throws(
      () => way('https://10.0.0.1', { HTTPS_PROXY: value }),
      (error) => {
        assert.ok(error instanceof ProxyVariableError);
        assert.match(error.message, why);
        assert.doesNotMatch(error.message, /secret/);
        return true;
      },
    );
  };
  refused('socks5://user:secret@p:1080', /HTTPS_PROXY .* the kind socks5:\/\/: use http:\/\/HOST:PORT/);
  refused('http://user:secret@p:port', /names no URL/);
});
