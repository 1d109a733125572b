import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import {
  applyDefaultTag,
  defaultPullPolicy,
  formatImageReference,
  ImageReferenceError,
  parseImageReference,
  tryParseImageReference,
} from './image-reference.ts';

const hex = 'a'.repeat(64);

suite('image reference', () => {
  const table: [string, string, string, 'Always' | 'IfNotPresent'][] = [
    ['nginx', 'docker.io/library/nginx', 'nginx:latest', 'Always'],
    ['nginx:latest', 'docker.io/library/nginx:latest', 'nginx:latest', 'Always'],
    ['nginx:1.27', 'docker.io/library/nginx:1.27', 'nginx:1.27', 'IfNotPresent'],
    ['team/app', 'docker.io/team/app', 'team/app:latest', 'Always'],
    ['index.docker.io/nginx', 'docker.io/library/nginx', 'index.docker.io/nginx:latest', 'Always'],
    ['localhost/app', 'localhost/app', 'localhost/app:latest', 'Always'],
    ['localhost:5000/app:v1', 'localhost:5000/app:v1', 'localhost:5000/app:v1', 'IfNotPresent'],
    ['registry.k8s.io/a/b/c:1', 'registry.k8s.io/a/b/c:1', 'registry.k8s.io/a/b/c:1', 'IfNotPresent'],
    ['[::1]:5000/app', '[::1]:5000/app', '[::1]:5000/app:latest', 'Always'],
    ['HOST/app', 'HOST/app', 'HOST/app:latest', 'Always'],
    [`nginx@sha256:${hex}`, `docker.io/library/nginx@sha256:${hex}`, `nginx@sha256:${hex}`, 'IfNotPresent'],
    [
      `nginx:latest@sha256:${hex}`,
      `docker.io/library/nginx:latest@sha256:${hex}`,
      `nginx:latest@sha256:${hex}`,
      'Always',
    ],
    ['a__b/c-d.e_f', 'docker.io/a__b/c-d.e_f', 'a__b/c-d.e_f:latest', 'Always'],
  ];
  for (const [text, whole, asked, policy] of table) {
    test(text.slice(0, 40), () => {
      assert.equal(formatImageReference(parseImageReference(text)), whole);
      assert.equal(applyDefaultTag(text), asked);
      assert.equal(defaultPullPolicy(text), policy);
    });
  }

  const wrong: [string, string][] = [
    ['', 'invalid reference format'],
    [':tag', 'invalid reference format'],
    ['nginx:', 'invalid reference format'],
    ['nginx@', 'invalid reference format'],
    ['a//b', 'invalid reference format'],
    ['/a', 'invalid reference format'],
    ['a b', 'invalid reference format'],
    ['-nginx', 'invalid reference format'],
    ['https://nginx', 'invalid reference format'],
    ['a.b.c/', 'invalid reference format'],
    [`nginx:${'t'.repeat(129)}`, 'invalid reference format'],
    ['Nginx', 'invalid reference format: repository name (library/Nginx) must be lowercase'],
    ['example.com/Nginx:1', 'invalid reference format: repository name (Nginx) must be lowercase'],
    [hex, `invalid repository name (${hex}), cannot specify 64-byte hexadecimal strings`],
    [`example.com/${'a'.repeat(256)}`, 'repository name must not be more than 255 characters'],
    [`nginx@md5:${'a'.repeat(32)}`, 'unsupported digest algorithm'],
    [`nginx@sha256:${'a'.repeat(63)}`, 'invalid checksum digest length'],
    [`nginx@sha256:${'A'.repeat(64)}`, 'invalid checksum digest format'],
  ];
  for (const [text, message] of wrong) {
    test(`${JSON.stringify(text.slice(0, 30))} is refused`, () => {
      assert.throws(() => parseImageReference(text), { name: 'ImageReferenceError', message });
      assert.throws(() => applyDefaultTag(text), {
        name: 'ImageReferenceError',
        message: `couldn't parse image name ${JSON.stringify(text)}: ${message}`,
      });
      assert.equal(defaultPullPolicy(text), 'IfNotPresent');
    });
  }

  test('a completed reference completes to itself', () => {
    const part = fc.stringMatching(/^[a-z0-9]{1,8}([._-][a-z0-9]{1,8})?$/);
    fc.assert(
      fc.property(
        fc.array(part, { minLength: 1, maxLength: 4 }),
        fc.option(fc.stringMatching(/^\w[\w.-]{0,20}$/)),
        (parts, tag) => {
          const text = `${parts.join('/')}${tag === null ? '' : `:${tag}`}`;
          const whole = formatImageReference(parseImageReference(text));
          assert.equal(formatImageReference(parseImageReference(whole)), whole);
        },
      ),
    );
  });

  test('no text makes it fail with anything but its own error', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        tryParseImageReference(text);
      }),
    );
    assert.equal(new ImageReferenceError('x').name, 'ImageReferenceError');
  });
});
