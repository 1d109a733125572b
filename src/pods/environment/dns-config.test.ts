import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { PodSpec } from '../../kubernetes/types.ts';
import { type NodeDns, parseResolvConf, podDnsConfig, ResolvConfError } from './dns-config.ts';

const node: NodeDns = {
  clusterDns: ['10.96.0.10'],
  clusterDomain: 'cluster.local',
  host: { servers: ['192.0.2.1', '192.0.2.2'], searches: ['example.com'], options: ['timeout:1', 'rotate'] },
  nodeIps: ['192.0.2.9'],
};

function form(spec: Partial<PodSpec> & { dnsPolicy: string }, more: Partial<NodeDns> = {}) {
  const pod = {
    metadata: { name: 'web', namespace: 'shop', uid: 'u-1' },
    spec: { containers: [], restartPolicy: 'Always', terminationGracePeriodSeconds: 30, ...spec },
  };
  return podDnsConfig(pod, { ...node, ...more });
}

const cluster = {
  servers: ['10.96.0.10'],
  searches: ['shop.svc.cluster.local', 'svc.cluster.local', 'cluster.local', 'example.com'],
  options: ['ndots:5'],
};

describe('resolv.conf', () => {
  it('gives servers, the last search line, options and no comments', () => {
    const text = [
      '# made by hand',
      '; old style',
      'nameserver 192.0.2.1 # first',
      'nameserver\t2001:db8::1',
      'search old.example',
      '  search a.example. b.example .',
      'options ndots:2 rotate',
      'options ndots:3',
      'domain ignored.example',
      'sortlist 10.0.0.0',
      '',
    ].join('\n');
    assert.deepEqual(parseResolvConf(text), {
      servers: ['192.0.2.1', '2001:db8::1'],
      searches: ['a.example', 'b.example'],
      options: ['ndots:3', 'rotate'],
    });
  });

  it('may be empty, and names a line it cannot use', () => {
    assert.deepEqual(parseResolvConf(''), { servers: [], searches: [], options: [] });
    assert.throws(() => parseResolvConf('nameserver'), ResolvConfError);
  });

  it('is read whatever the text is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        try {
          parseResolvConf(text);
        } catch (error) {
          assert.ok(error instanceof ResolvConfError);
        }
      }),
    );
  });
});

describe('the DNS of a pod', () => {
  for (const [what, spec, more, expected] of [
    ['Default is the node', { dnsPolicy: 'Default' }, {}, node.host],
    ['ClusterFirst is the cluster, then the node', { dnsPolicy: 'ClusterFirst' }, {}, cluster],
    [
      'ClusterFirst on the node network is the node',
      { dnsPolicy: 'ClusterFirst', hostNetwork: true },
      {},
      node.host,
    ],
    [
      'ClusterFirstWithHostNet is the cluster',
      { dnsPolicy: 'ClusterFirstWithHostNet', hostNetwork: true },
      {},
      cluster,
    ],
    [
      'ClusterFirst without a domain has only the searches of the node',
      { dnsPolicy: 'ClusterFirst' },
      { clusterDomain: '' },
      { ...cluster, searches: ['example.com'] },
    ],
    ['None is nothing', { dnsPolicy: 'None' }, {}, { servers: [], searches: [], options: [] }],
    [
      'None with wishes is the wishes',
      {
        dnsPolicy: 'None',
        dnsConfig: {
          nameservers: ['1.1.1.1'],
          searches: ['x.example'],
          options: [{ name: 'ndots', value: '2' }, { name: 'edns0' }],
        },
      },
      {},
      { servers: ['1.1.1.1'], searches: ['x.example'], options: ['ndots:2', 'edns0'] },
    ],
    [
      'wishes are added without repeats, options replaced by name',
      {
        dnsPolicy: 'ClusterFirst',
        dnsConfig: {
          nameservers: ['10.96.0.10', '1.1.1.1'],
          searches: ['cluster.local', 'x.example'],
          options: [{ name: 'ndots', value: '1' }],
        },
      },
      {},
      {
        servers: ['10.96.0.10', '1.1.1.1'],
        searches: [...cluster.searches, 'x.example'],
        options: ['ndots:1'],
      },
    ],
    [
      'without a resolv.conf of the node it is the node itself',
      { dnsPolicy: 'Default' },
      { host: undefined, nodeIps: ['2001:db8::9', '192.0.2.9'] },
      { servers: ['::1', '127.0.0.1'], searches: ['.'], options: [] },
    ],
    [
      'with no address known either it is IPv4',
      { dnsPolicy: 'Default' },
      { host: undefined, nodeIps: [] },
      { servers: ['127.0.0.1'], searches: ['.'], options: [] },
    ],
  ] as const) {
    it(what, () => {
      const { config, warnings } = form(spec as never, more);
      assert.deepEqual(config, expected);
      assert.deepEqual(warnings, []);
    });
  }

  it('falls back to the node without clusterDNS, and says so', () => {
    const { config, warnings } = form({ dnsPolicy: 'ClusterFirst' }, { clusterDns: [] });
    assert.deepEqual(config, node.host);
    const nodeMessage =
      'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.';
    assert.deepEqual(warnings, [
      { reason: 'MissingClusterDNS', message: `pod: "web_shop(u-1)". ${nodeMessage}`, nodeMessage },
    ]);
  });

  it('keeps three name servers, and says which', () => {
    const { config, warnings } = form({
      dnsPolicy: 'Default',
      dnsConfig: { nameservers: ['1.1.1.1', '2.2.2.2', '3.3.3.3'] },
    });
    assert.deepEqual(config.servers, ['192.0.2.1', '192.0.2.2', '1.1.1.1']);
    assert.deepEqual(warnings, [
      {
        reason: 'DNSConfigForming',
        message:
          'Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 192.0.2.1 192.0.2.2 1.1.1.1',
      },
    ]);
  });

  it('keeps searches within count, length and line, whatever is asked', () => {
    const domain = fc.integer({ min: 1, max: 300 }).map((length) => 'x'.repeat(length));
    fc.assert(
      fc.property(fc.array(domain, { maxLength: 50 }), (searches) => {
        const { config, warnings } = form({
          dnsPolicy: 'None',
          dnsConfig: { nameservers: ['1.1.1.1'], searches },
        });
        assert.ok(config.searches.length <= 32);
        assert.ok(config.searches.every((each) => each.length <= 253));
        assert.ok(config.searches.join(' ').length <= 2048);
        const dropped = new Set(searches).size > config.searches.length;
        assert.equal(warnings.length, dropped ? 1 : 0);
        if (dropped) assert.ok(warnings[0]!.message.endsWith(`search line is: ${config.searches.join(' ')}`));
      }),
    );
  });
});
