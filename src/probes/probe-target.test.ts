import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Container } from '../kubernetes/types.ts';
import { type ProbeSubject, probeCommand, probeHost, probePort } from './probe-target.ts';

const container: Container = {
  name: 'web',
  ports: [
    { name: 'http', containerPort: 8080 },
    { name: 'admin', containerPort: 9000 },
  ],
  env: [
    { name: 'FILE', value: '/tmp/health' },
    { name: 'AGAIN', value: '$(FILE)' },
    { name: 'EMPTY' },
    { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
  ],
};
const subject = (podIp?: string): ProbeSubject => ({ container, containerId: 'c1', podIp });

describe('where a probe goes', () => {
  it('is the pod unless a host is given', () => {
    assert.equal(probeHost(undefined, subject('10.1.0.7')), '10.1.0.7');
    assert.equal(probeHost('', subject('10.1.0.7')), '10.1.0.7');
    assert.equal(probeHost('example.org', subject()), 'example.org');
    assert.throws(() => probeHost(undefined, subject()), /container web has no IP address yet/);
  });

  it('is a port by number or by name', () => {
    assert.equal(probePort(80, container), 80);
    assert.equal(probePort('admin', container), 9000);
    assert.equal(probePort('81', container), 81);
    assert.throws(() => probePort('metrics', container), /container web has no port named "metrics"/);
    assert.throws(() => probePort(0, container), /not in 1 to 65535/);
    assert.throws(() => probePort('70000', container), /not in 1 to 65535/);
  });

  it('is a command with plain environment values put in, once', () => {
    const command = ['cat', '$(FILE)', '$(AGAIN)', '$(NODE)', '$$(FILE)', 'a$(EMPTY)b', '$(NONE)'];
    assert.deepEqual(probeCommand({ exec: { command } }, container), [
      'cat',
      '/tmp/health',
      '$(FILE)',
      '$(NODE)',
      '$(FILE)',
      'ab',
      '$(NONE)',
    ]);
  });
});
