import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { ApiClient } from '../../client/api-client.ts';
import { KubeconfigError } from '../../client/kubeconfig.ts';
import { VirtualClock } from '../../concurrency/virtual-clock.ts';
import type { NodeCredentials } from '../../credentials/node-credentials.ts';
import { type Logger, silentLogger } from '../../telemetry/logger.ts';
import { silentMetrics } from '../../telemetry/metrics.ts';
import { keepCredentials } from './keep-credentials.ts';

it('a kubeconfig that cannot be used is said once, and taken when it can be', async () => {
  const clock = new VirtualClock();
  const errors: unknown[] = [];
  const logger: Logger = { ...silentLogger, error: (_, error) => errors.push(error), with: () => logger };
  const client = { request: async () => undefined, watch: async () => {} } as unknown as ApiClient;
  let tries = 0;
  let usable = false;
  const used: ApiClient[] = [];
  const keeping = keepCredentials(
    {
      kubeconfig: '/k',
      bootstrapKubeconfig: '',
      certificateDirectory: '/c',
      rotateCertificates: false,
      nodeName: 'node',
      client: { userAgent: 'x', qps: 1, burst: 1, clock, random: () => 0, logger, metrics: silentMetrics },
      use: (found) => used.push(found),
      obtain: async () => {
        tries++;
        if (!usable) throw new KubeconfigError('kubeconfig /k cannot be read: there is no such file');
        return { client, run: async () => {} } as unknown as NodeCredentials;
      },
    },
    new AbortController().signal,
  );
  await clock.advance(120_000);
  assert.ok(tries >= 9 && tries <= 14, `${tries}`);
  assert.deepEqual(errors, ['kubeconfig /k cannot be read: there is no such file']);
  usable = true;
  await clock.advance(15_000);
  await keeping;
  assert.deepEqual(used, [client]);
  assert.equal(clock.nextTimer(), undefined);
});
