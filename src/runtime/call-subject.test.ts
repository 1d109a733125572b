import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { containerConfig, imageSpec, sandboxConfig } from '../../test/fixtures/cri-runtime/requests.ts';
import { callSubject } from './call-subject.ts';

describe('callSubject', () => {
  const id = '0123456789abcdef'.repeat(4);
  const sandbox = sandboxConfig('web');

  it('names a call by what its request tells', () => {
    assert.equal(callSubject({ version: '0.1.0' }), '');
    assert.equal(callSubject({ containerId: id, timeout: 1n }), 'container 0123456789abc');
    assert.equal(callSubject({ podSandboxId: id }), 'sandbox 0123456789abc');
    assert.equal(callSubject({ config: sandbox, runtimeHandler: '' }), 'pod default/web');
    assert.equal(callSubject({ image: imageSpec('busybox'), auth: undefined }), 'image busybox');
  });

  it('names a new container by its pod', () => {
    const config = containerConfig('main', { image: 'busybox' });
    const request = { podSandboxId: id, config, sandboxConfig: sandbox };
    assert.equal(callSubject(request), 'container main of pod default/web');
  });

  it('is empty where the request holds nothing', () => {
    assert.equal(callSubject({ config: undefined, runtimeHandler: '' }), '');
    assert.equal(callSubject({ image: undefined }), '');
  });
});
