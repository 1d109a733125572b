import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { podHostname } from './pod-hostname.ts';
import type { PodSpec } from './types.ts';

const pod = (spec: Partial<PodSpec>, name = 'web') => ({
  metadata: { name, namespace: 'shop' },
  spec: { containers: [], ...spec },
});

suite('pod host name', () => {
  test('is the pod name, the host name, or the override', () => {
    assert.deepEqual(podHostname(pod({}), 'cluster.local'), { hostname: 'web', kernelHostname: 'web' });
    assert.equal(podHostname(pod({ hostname: 'front' }), 'cluster.local').hostname, 'front');
    assert.deepEqual(
      podHostname(pod({ hostname: 'front', subdomain: 's', hostnameOverride: 'x.y' }), 'cluster.local'),
      {
        hostname: 'x.y',
        kernelHostname: 'x.y',
      },
    );
  });

  test('a subdomain gives a domain, and on demand a fully qualified host name', () => {
    assert.deepEqual(podHostname(pod({ subdomain: 'db' }), 'cluster.local'), {
      hostname: 'web',
      domain: 'db.shop.svc.cluster.local',
      kernelHostname: 'web',
    });
    assert.equal(
      podHostname(pod({ subdomain: 'db', setHostnameAsFQDN: true }), 'cluster.local').kernelHostname,
      'web.db.shop.svc.cluster.local',
    );
    assert.equal(podHostname(pod({ setHostnameAsFQDN: true }), 'cluster.local').kernelHostname, 'web');
  });

  test('an FQDN the kernel cannot hold is an error that says how long it is', () => {
    assert.throws(
      () => podHostname(pod({ subdomain: 'd'.repeat(40), setHostnameAsFQDN: true }), 'cluster.local'),
      {
        name: 'HostnameTooLongError',
        message: /is too long \(64 characters is the max, 67 characters requested\)$/,
      },
    );
  });

  test('long names are cut to 63 and end in a letter or digit', () => {
    const name = fc.stringMatching(/^[a-z]([-a-z.]{0,90}[a-z0-9])?$/);
    fc.assert(
      fc.property(name, (name) => {
        const { hostname } = podHostname(pod({}, name), 'cluster.local');
        assert.ok(name.startsWith(hostname) && hostname.length <= 63 && !/[-.]$/.test(hostname));
      }),
    );
  });
});
