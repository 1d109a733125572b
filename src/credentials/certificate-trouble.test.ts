import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../client/api-client.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { CertificateTrouble } from './certificate-trouble.ts';

test('trouble is said once, until it is another one or over; what the client says is not said again', () => {
  const said: string[] = [];
  const logger = {
    ...silentLogger,
    error: (message: string, error: unknown) => void said.push(`${message}: ${(error as Error).message}`),
  };
  const trouble = new CertificateTrouble(logger, 'No certificate');
  const refusal = new ApiError({ status: 403, reason: 'Forbidden', message: 'no rights' });
  for (let n = 0; n < 3; n++) trouble.failed(refusal);
  assert.deepEqual(said.splice(0), ['No certificate: no rights']);
  trouble.failed(new ApiError({ status: 0, reason: 'Unreachable', message: 'away' }));
  trouble.failed(new ApiError({ status: 401, reason: 'Unauthorized', message: 'who?' }));
  assert.deepEqual(said.splice(0), []);
  trouble.failed(refusal);
  assert.equal(said.splice(0).length, 1);
  trouble.succeeded();
  trouble.failed(refusal);
  assert.equal(said.length, 1);
});
