import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiRequest } from '../client/api-client.ts';
import { apiReviews } from './api-reviews.ts';

const { signal } = new AbortController();

function server(status: unknown) {
  const requests: ApiRequest[] = [];
  const request = <T>(asked: ApiRequest): Promise<T> => {
    requests.push(asked);
    return Promise.resolve({ status } as T);
  };
  return { reviews: apiReviews({ request }), requests };
}

test('a token stands for a user only when the review says so and names one', async () => {
  const user = { username: 'u', uid: '7', groups: ['g'], extra: { k: ['v'] } };
  const { reviews, requests } = server({ authenticated: true, user });
  assert.deepEqual(await reviews.tokenReview('secret', signal), {
    name: 'u',
    uid: '7',
    groups: ['g'],
    extra: { k: ['v'] },
  });
  assert.deepEqual(
    [requests[0]?.path, (requests[0]?.body as { spec: unknown } | undefined)?.spec],
    ['/apis/authentication.k8s.io/v1/tokenreviews', { token: 'secret' }],
  );
  for (const status of [undefined, { authenticated: false, user }, { authenticated: true, user: {} }]) {
    assert.equal(await server(status).reviews.tokenReview('x', signal), undefined);
  }
});

test('access is asked for on this node, and granted only by a clear yes', async () => {
  const { reviews, requests } = server({ allowed: true });
  const attributes = {
    user: { name: 'u', groups: ['g'] },
    verb: 'get',
    subresource: 'stats',
    nodeName: 'worker-1',
  } as const;
  assert.deepEqual(await reviews.accessReview(attributes, signal), { allowed: true });
  assert.deepEqual((requests[0]?.body as { spec: unknown } | undefined)?.spec, {
    user: 'u',
    groups: ['g'],
    resourceAttributes: {
      verb: 'get',
      version: 'v1',
      resource: 'nodes',
      subresource: 'stats',
      name: 'worker-1',
    },
  });
  for (const status of [undefined, {}, { allowed: false }, { allowed: true, denied: true }]) {
    assert.equal((await server(status).reviews.accessReview(attributes, signal)).allowed, false);
  }
});
