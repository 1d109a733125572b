import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../client/api-client.ts';
import { settle, VirtualClock } from '../concurrency/virtual-clock.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { MetricsRegistry } from '../telemetry/metrics-registry.ts';
import { AccessMetrics } from './access-metrics.ts';
import { Authentication } from './authentication.ts';
import type { User } from './route.ts';

test('tokens are counted by whether they were known, and what the API server answered by its code', async () => {
  const registry = new MetricsRegistry();
  const clock = new VirtualClock();
  const metrics = new AccessMetrics({ metrics: registry, clock });
  const answers: PromiseWithResolvers<User | undefined>[] = [];
  const reviews = metrics.reviews({
    tokenReview: () => {
      const answer = Promise.withResolvers<User | undefined>();
      answers.push(answer);
      return answer.promise;
    },
    accessReview: () => Promise.reject(new Error('lost')),
  });
  const authentication = new Authentication({
    certificates: false,
    tokens: { reviews, cacheTtlMs: 60_000 },
    anonymous: false,
    clock,
    log: silentLogger,
    metrics,
  });
  const has = async (...lines: string[]) => {
    const text = await registry.exposition();
    for (const line of lines) assert.ok(text.includes(`${line}\n`), `${line} in\n${text}`);
  };
  const ask = (token: string) =>
    authentication.identify({ certificate: undefined, authorization: `Bearer ${token}` });

  const both = [ask('anna'), ask('anna')];
  await settle();
  await has(
    'authentication_token_cache_active_fetch_count{status="in_flight"} 1',
    'authentication_token_cache_active_fetch_count{status="blocked"} 2',
  );
  answers[0]!.resolve({ name: 'anna', groups: [] });
  await Promise.all(both);
  await ask('anna');
  const wrong = ask('eve');
  await settle();
  answers[1]!.reject(new ApiError({ status: 403, reason: 'Forbidden', message: 'no' }));
  assert.equal(await wrong, undefined);
  const attributes = { user: { name: 'x', groups: [] }, verb: 'get', subresource: 'proxy', nodeName: 'n' };
  const asked = reviews.accessReview(attributes as never, new AbortController().signal);
  await assert.rejects(asked, /lost/);
  metrics.certificate(clock.now() + 5000);
  await has(
    'authentication_token_cache_request_total{status="miss"} 3',
    'authentication_token_cache_request_total{status="hit"} 1',
    'authentication_token_cache_fetch_total{status="ok"} 1',
    'authentication_token_cache_fetch_total{status="error"} 1',
    'authentication_token_cache_active_fetch_count{status="blocked"} 0',
    'apiserver_delegated_authn_request_total{code="201"} 1',
    'apiserver_delegated_authn_request_total{code="403"} 1',
    'apiserver_delegated_authz_request_total{code="<error>"} 1',
    'apiserver_client_certificate_expiration_seconds_sum 5',
  );
});
