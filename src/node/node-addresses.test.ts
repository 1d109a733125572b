import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { settle, VirtualClock } from '../concurrency/virtual-clock.ts';
import { network } from './fixtures/node-world.ts';
import { defaultInterface4, defaultInterface6, NameLookup } from './host-network.ts';
import { type AddressFacts, hostIps, NodeIpError, nodeAddresses, parseNodeIps } from './node-addresses.ts';

const base: AddressFacts = {
  nodeName: 'worker-1',
  hostname: 'worker-1',
  nodeIps: [],
  externalCloud: false,
  ...network,
  existing: [],
};
const existing = [{ type: 'ExternalIP', address: '203.0.113.9' }];

describe('--node-ip', () => {
  for (const [text, expected] of [
    ['', []],
    ['10.0.0.5', ['10.0.0.5']],
    ['fd00:0:0::5', ['fd00::5']],
    ['10.0.0.5, fd00::5', ['10.0.0.5', 'fd00::5']],
    ['::', ['::']],
    ['0.0.0.0', ['0.0.0.0']],
  ] as const) {
    test(`"${text}" is ${JSON.stringify(expected)}`, () => assert.deepEqual(parseNodeIps(text), expected));
  }
  for (const text of [
    'worker-1',
    '10.0.0.5,',
    '10.0.0.5,10.0.0.6',
    '10.0.0.5,::',
    '10.0.0.5,fd00::5,10.0.0.6',
  ]) {
    test(`"${text}" is refused`, () => assert.throws(() => parseNodeIps(text), NodeIpError));
  }
});

describe('addresses', () => {
  const cases: readonly (readonly [string, Partial<AddressFacts>, readonly string[]])[] = [
    ['the default route decides', {}, ['10.0.0.5']],
    [':: prefers IPv6', { nodeIps: ['::'] }, ['fd00::5']],
    ['0.0.0.0 prefers IPv4', { nodeIps: ['0.0.0.0'] }, ['10.0.0.5']],
    ['one that is given', { nodeIps: ['10.0.0.6'] }, ['10.0.0.6']],
    ['a pair that is given', { nodeIps: ['fd00::5', '10.0.0.6'] }, ['fd00::5', '10.0.0.6']],
    ['DNS comes before the route', { lookedUp: ['10.0.0.6'] }, ['10.0.0.6']],
    ['DNS: the preferred family first', { lookedUp: ['fd00::5', '10.0.0.6'] }, ['10.0.0.6']],
    ['DNS: the other family when it is all there is', { lookedUp: ['fd00::5'] }, ['fd00::5']],
    ['DNS: not what is no address of this host', { lookedUp: ['127.0.1.1', '8.8.8.8'] }, ['10.0.0.5']],
    ['a host name that is an address', { hostname: '192.0.2.7' }, ['192.0.2.7']],
    [
      'IPv6 when the default route has nothing else',
      { host: { ...network.host, defaultAddresses: ['fe80::1', 'fd00::5'] } },
      ['fd00::5'],
    ],
  ];
  for (const [title, facts, ips] of cases) {
    test(title, () => {
      const all = { ...base, ...facts };
      assert.deepEqual(nodeAddresses(all), {
        addresses: [
          ...ips.map((address) => ({ type: 'InternalIP', address })),
          { type: 'Hostname', address: all.hostname },
        ],
      });
    });
  }

  for (const [ip, problem] of [
    ['127.0.0.1', /loopback/],
    ['::1', /loopback/],
    ['224.0.0.1', /multicast/],
    ['fe80::1', /link-local/],
    ['10.0.0.99', /on no network interface/],
  ] as const) {
    test(`${ip} cannot be one, and what was reported stays`, () => {
      const decision = nodeAddresses({ ...base, nodeIps: [ip], existing });
      assert.match(decision.problem ?? '', problem);
      assert.equal(decision.addresses, existing);
    });
  }

  test('none at all is told with the remedy', () => {
    const host = { interfaceAddresses: ['127.0.0.1'], defaultAddresses: [] };
    const decision = nodeAddresses({ ...base, host });
    assert.deepEqual(decision.addresses, []);
    assert.match(decision.problem ?? '', /no address found for node "worker-1".*--node-ip/);
  });
});

test('while DNS has not answered, a node keeps its addresses, and a new one has those of its route', () => {
  const existing = [{ type: 'InternalIP', address: '10.0.0.6' }];
  assert.deepEqual(nodeAddresses({ ...base, lookedUp: undefined, existing }), { addresses: existing });
  const { addresses } = nodeAddresses({ ...base, lookedUp: undefined, existing: [] });
  assert.deepEqual(addresses[0], { type: 'InternalIP', address: '10.0.0.5' });
  // What is given counts whatever DNS says.
  const given = nodeAddresses({ ...base, nodeIps: ['10.0.0.5'], lookedUp: undefined, existing });
  assert.equal(given.addresses[0]?.address, '10.0.0.5');
});

describe('addresses with an external cloud provider', () => {
  test('are the cloud’s once it has set them', () => {
    const decision = nodeAddresses({ ...base, externalCloud: true, nodeIps: ['10.0.0.6'], existing });
    assert.equal(decision.addresses, existing);
  });
  test('are only the host name before', () => {
    const { addresses } = nodeAddresses({ ...base, externalCloud: true });
    assert.deepEqual(addresses, [{ type: 'Hostname', address: 'worker-1' }]);
  });
  test('are those of --node-ip before', () => {
    const { addresses } = nodeAddresses({ ...base, externalCloud: true, nodeIps: ['10.0.0.6'] });
    assert.deepEqual(addresses[0], { type: 'InternalIP', address: '10.0.0.6' });
  });
});

test('pods get the first internal address and one of the other family', () => {
  const of = (...list: [string, string][]) => hostIps(list.map(([type, address]) => ({ type, address })));
  assert.deepEqual(of(['Hostname', 'w'], ['InternalIP', '10.0.0.5'], ['InternalIP', 'fd00::5']), [
    '10.0.0.5',
    'fd00::5',
  ]);
  assert.deepEqual(of(['ExternalIP', '203.0.113.9'], ['InternalIP', '10.0.0.5']), ['10.0.0.5']);
  assert.deepEqual(of(['ExternalIP', '203.0.113.9']), ['203.0.113.9']);
  assert.deepEqual(of(['Hostname', 'w']), []);
});

test('the default interface is that of the cheapest default route', () => {
  const routes = [
    'Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT',
    'eth1\t00000000\t0101A8C0\t0003\t0\t0\t200\t00000000\t0\t0\t0',
    'eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0',
    'tun0\t00000000\t0100000A\t0003\t0\t0\t0\t00000080\t0\t0\t0',
    'eth2\t00000000\t0100000A\t0002\t0\t0\t1\t00000000\t0\t0\t0',
  ].join('\n');
  assert.equal(defaultInterface4(routes), 'eth0');
  assert.equal(defaultInterface4(''), undefined);
  const zero = '0'.repeat(32);
  const routes6 = [
    `fd000000000000000000000000000000 40 ${zero} 00 ${zero} 00000100 00000001 00000000 00000001     eth9`,
    `${zero} 00 ${zero} 00 fe80000000000000000000000000000a 00000400 00000001 00000000 00000003     eth0`,
    `${zero} 00 ${zero} 00 ${zero} ffffffff 00000001 00000000 00200200       lo`,
  ].join('\n');
  assert.equal(defaultInterface6(routes6), 'eth0');
});

test('an answer of DNS is waited for only so long, and the last good one is kept', async () => {
  const clock = new VirtualClock();
  let answer: () => Promise<string[]> = async () => ['10.0.0.6'];
  let asked = 0;
  let late = 0;
  const names = new NameLookup({
    name: 'worker-1',
    clock,
    onLate: () => late++,
    resolve: () => {
      asked++;
      return answer();
    },
  });
  assert.deepEqual(await names.addresses(100), ['10.0.0.6']);
  answer = async () => {
    throw new Error('ENOTFOUND');
  };
  assert.deepEqual(await names.addresses(100), ['10.0.0.6']);
  const hung = Promise.withResolvers<string[]>();
  answer = () => hung.promise;
  let found: readonly string[] | undefined;
  for (const patience of [100, 500]) {
    found = undefined;
    void names.addresses(patience).then((addresses) => (found = addresses));
    await clock.advance(patience - 1);
    assert.equal(found, undefined);
    await clock.advance(1);
    assert.deepEqual(found, ['10.0.0.6']);
  }
  assert.equal(asked, 3, 'one question at a time');
  hung.resolve(['10.0.0.7']);
  await settle();
  assert.equal(late, 1);
  answer = async () => ['10.0.0.7'];
  assert.deepEqual(await names.addresses(100), ['10.0.0.7']);
  assert.deepEqual([asked, late], [4, 1]);
  assert.equal(clock.nextTimer(), undefined);
});

test('before DNS has ever answered, nothing is known; a name that does not exist is an answer', async () => {
  const clock = new VirtualClock();
  const first = Promise.withResolvers<string[]>();
  const names = new NameLookup({ name: 'worker-1', clock, resolve: () => first.promise });
  const before = names.addresses(200);
  await clock.advance(200);
  assert.equal(await before, undefined);
  first.reject(new Error('ENOTFOUND'));
  await settle();
  assert.deepEqual(await names.addresses(200), []);
});
