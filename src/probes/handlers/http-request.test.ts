import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { probeHeaders } from './http-headers.ts';
import { requestPath } from './http-path.ts';

describe('the request line of an httpGet probe', () => {
  const table: readonly (readonly [string, string])[] = [
    ['/', '/'],
    ['', '/'],
    ['healthz', '/healthz'],
    ['/a?b=c&d=%20', '/a?b=c&d=%20'],
    ['/a#b', '/a'],
    ['/a?b#c', '/a?b'],
    ['/a b', '/a%20b'],
    ['/ä', '/%C3%A4'],
    ['/a/../b', '/a/../b'],
    ['/100%', '/100%25'],
    ['/100%?x', '/100%25%3Fx'],
    ['/a?x=%zz', '/a?x=%zz'],
    ['http://elsewhere/a?b', '/a?b'],
    ['//elsewhere/a', '/a'],
    ['http://elsewhere', '/'],
    ['/a\nb', '/a%0Ab'],
  ];
  for (const [path, expected] of table) {
    it(JSON.stringify(path), () => assert.equal(requestPath(path), expected));
  }

  it('is one Node sends, whatever the path', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (path) => {
        assert.match(requestPath(path), /^\/[\x21-\x7e]*$/);
      }),
    );
  });
});

describe('the headers of an httpGet probe', () => {
  const table: readonly (readonly [string, string, string])[] = [
    ['defaults', '', 'Host=10.1.0.7:80 User-Agent=kube-probe/1.36 Accept=*/*'],
    [
      'repeats in order',
      'X-A=1 X-B=2 X-A=3',
      'Host=10.1.0.7:80 User-Agent=kube-probe/1.36 Accept=*/* X-A=1 X-B=2 X-A=3',
    ],
    ['a host of its own', 'host=example.org', 'Host=example.org User-Agent=kube-probe/1.36 Accept=*/*'],
    ['the first host', 'Host=a Host=b', 'Host=a User-Agent=kube-probe/1.36 Accept=*/*'],
    ['an empty host', 'Host=', 'Host=10.1.0.7:80 User-Agent=kube-probe/1.36 Accept=*/*'],
    ['an agent of its own', 'user-agent=me', 'Host=10.1.0.7:80 User-Agent=me Accept=*/*'],
    ['no agent', 'User-Agent=', 'Host=10.1.0.7:80 Accept=*/*'],
    ['accept of its own', 'Accept=text/html', 'Host=10.1.0.7:80 User-Agent=kube-probe/1.36 Accept=text/html'],
    ['no accept', 'accept=', 'Host=10.1.0.7:80 User-Agent=kube-probe/1.36'],
    [
      'no framing',
      'Content-Length=5 Transfer-Encoding=chunked',
      'Host=10.1.0.7:80 User-Agent=kube-probe/1.36 Accept=*/*',
    ],
  ];
  for (const [name, given, expected] of table) {
    it(name, () => {
      const headers = given
        .split(' ')
        .filter(Boolean)
        .map((text) => {
          const [header = '', value = ''] = text.split('=');
          return { name: header, value };
        });
      const flat = probeHeaders(headers, '10.1.0.7:80', 'kube-probe/1.36');
      const pairs: string[] = [];
      for (let at = 0; at < flat.length; at += 2) pairs.push(`${flat[at]}=${flat[at + 1]}`);
      assert.equal(pairs.join(' '), expected);
    });
  }
});
