import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { callTimeout } from './call-timeout.ts';

describe('callTimeout', () => {
  const base = 120_000;
  const containerId = 'c';

  it('gives most calls the request time limit, and a sandbox twice that', () => {
    assert.equal(callTimeout('version', { version: '' }, base), 120_000);
    assert.equal(callTimeout('runPodSandbox', { config: undefined, runtimeHandler: '' }, base), 240_000);
  });

  it('adds the time that the process may take', () => {
    assert.equal(callTimeout('stopContainer', { containerId, timeout: 30n }, base), 150_000);
    assert.equal(callTimeout('execSync', { containerId, cmd: [], timeout: 1n }, base), 121_000);
    assert.equal(
      callTimeout('checkpointContainer', { containerId, location: '', timeout: 0n }, base),
      120_000,
    );
    assert.equal(
      callTimeout('checkpointContainer', { containerId, location: '', timeout: 600n }, base),
      600_000,
    );
  });

  it('sets no limit to a pull and to a command without one', () => {
    assert.equal(
      callTimeout('execSync', { containerId, cmd: [], timeout: 0n }, base),
      Number.POSITIVE_INFINITY,
    );
    const pull = { image: undefined, auth: undefined, sandboxConfig: undefined };
    assert.equal(callTimeout('pullImage', pull, base), Number.POSITIVE_INFINITY);
  });
});
