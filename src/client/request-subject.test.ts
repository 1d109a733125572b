import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refusalError, retryAfterMs } from './refusal.ts';
import { requestSubject, subjectText } from './request-subject.ts';

const cases: [string, string, boolean, string][] = [
  ['GET', '/api/v1/nodes/a', false, 'get nodes a'],
  ['GET', '/api/v1/pods', true, 'watch pods'],
  ['GET', '/api/v1/namespaces/kube-system/configmaps', false, 'list configmaps kube-system'],
  ['PATCH', '/api/v1/namespaces/default/pods/web/status', false, 'patch pods/status default/web'],
  ['DELETE', '/api/v1/namespaces/default/pods/web', false, 'delete pods default/web'],
  ['GET', '/api/v1/namespaces/default', false, 'get namespaces default'],
  ['PUT', '/api/v1/namespaces/default/status', false, 'update namespaces/status default'],
  ['POST', '/apis/authentication.k8s.io/v1/tokenreviews', false, 'create tokenreviews'],
  [
    'PUT',
    '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/a',
    false,
    'update leases kube-node-lease/a',
  ],
  ['GET', '/version', false, 'get /version'],
  ['GET', '/api/v1', false, 'get /api/v1'],
];
for (const [method, path, watch, expected] of cases)
  test(`${method} ${path}`, () => {
    assert.equal(subjectText(requestSubject(method, path, watch)), expected);
  });

test('refusals of any shape become errors', () => {
  const subject = requestSubject('GET', '/api/v1/nodes/a');
  const error = (status: number, body: unknown) =>
    refusalError({ subject, status, body, kubeconfig: '/k.conf' });
  assert.equal(error(410, '').gone, true);
  assert.equal(error(404, '<html>').message, 'cannot get nodes a: <html>');
  assert.equal(error(503, null).reason, 'ServiceUnavailable');
  assert.equal(error(418, { message: 7, reason: [] }).message, 'cannot get nodes a: HTTP status 418');
  assert.equal(error(429, { details: { retryAfterSeconds: 3 } }).retryAfterMs, 3000);
  assert.match(
    error(403, { message: 'node "a" is not allowed to modify node "b"' }).message,
    /must be the one in its credentials/,
  );
  assert.doesNotMatch(error(403, { message: 'no relationship found between node' }).message, /;/);
});

test('Retry-After is seconds or a date', () => {
  assert.equal(retryAfterMs('7'), 7000);
  assert.equal(retryAfterMs('Thu, 01 Jan 1970 00:01:00 GMT', 10_000), 50_000);
  assert.equal(retryAfterMs('soon'), undefined);
  assert.equal(retryAfterMs(undefined), undefined);
});
