import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { oomScoreAdj } from './oom-score.ts';
import { bytesOf, milliCpu, podIsLimited, podLimits, podRequests } from './pod-resources.ts';
import { podQosClass } from './qos.ts';
import { compareQuantities, formatQuantity } from './quantity.ts';
import type { Container, PodSpec, QosClass } from './types.ts';

type List = Record<string, string>;

const c = (name: string, requests?: List, limits?: List, restartPolicy?: string): Container => ({
  name,
  image: 'i',
  ...(restartPolicy ? { restartPolicy } : {}),
  resources: { ...(requests ? { requests } : {}), ...(limits ? { limits } : {}) },
});
const cpu = (amount: string) => ({ cpu: amount });
const both = (cpu: string, memory: string) => ({ cpu, memory });
const plain = (amounts: ReadonlyMap<string, import('./quantity.ts').Quantity>) =>
  Object.fromEntries([...amounts].map(([name, amount]) => [name, formatQuantity(amount)]));

suite('pod resources', () => {
  const table: { name: string; spec: PodSpec; requests: List; limits?: List }[] = [
    { name: 'nothing asked', spec: { containers: [c('a')] }, requests: {} },
    {
      name: 'regular containers add up',
      spec: { containers: [c('a', cpu('100m')), c('b', both('200m', '1Gi'))] },
      requests: both('300m', '1Gi'),
    },
    {
      name: 'the largest init container counts when it is larger',
      spec: { initContainers: [c('i', cpu('1')), c('j', cpu('2'))], containers: [c('a', cpu('500m'))] },
      requests: cpu('2'),
    },
    {
      name: 'a sidecar runs beside the regular containers',
      spec: { initContainers: [c('s', cpu('1'), undefined, 'Always')], containers: [c('a', cpu('500m'))] },
      requests: cpu('1500m'),
    },
    {
      name: 'an init container runs beside the sidecars before it, not those after it',
      spec: {
        initContainers: [
          c('s', cpu('1'), undefined, 'Always'),
          c('i', cpu('3')),
          c('t', cpu('1'), undefined, 'Always'),
        ],
        containers: [c('a', cpu('100m'))],
      },
      requests: cpu('4'),
    },
    {
      name: 'overhead is added to requests, and to limits that exist',
      spec: { containers: [c('a', cpu('1'), { memory: '1Gi' })], overhead: both('250m', '64Mi') },
      requests: both('1250m', '1088Mi'),
      limits: { memory: '1088Mi' },
    },
    {
      name: 'pod-level resources replace the sum before overhead',
      spec: {
        containers: [c('a', both('1', '1Gi'))],
        resources: { requests: cpu('3'), limits: { cpu: '4', 'example.com/gpu': '1' } },
        overhead: cpu('1'),
      },
      requests: both('4', '1Gi'),
      limits: cpu('5'),
    },
    {
      name: 'a limit stands for a missing request',
      spec: { containers: [c('a', undefined, { cpu: '1', 'example.com/gpu': '2' })] },
      requests: { cpu: '1', 'example.com/gpu': '2' },
      limits: { cpu: '1', 'example.com/gpu': '2' },
    },
  ];
  for (const { name, spec, requests, limits } of table) {
    test(name, () => {
      assert.deepEqual(plain(podRequests(spec)), requests);
      if (limits) assert.deepEqual(plain(podLimits(spec)), limits);
    });
  }

  test('overhead can be left out', () => {
    const spec = { containers: [c('a', cpu('1'), cpu('1'))], overhead: cpu('1') };
    assert.equal(milliCpu(podRequests(spec, { withoutOverhead: true })), 1000);
    assert.equal(milliCpu(podLimits(spec, { withoutOverhead: true })), 1000);
    assert.equal(bytesOf(podRequests(spec)), 0);
  });

  test('a pod is limited only when all its containers or the pod itself are', () => {
    const limited = c('a', undefined, cpu('1'));
    assert.equal(podIsLimited({ containers: [limited] }, 'cpu'), true);
    assert.equal(podIsLimited({ containers: [limited, c('b')] }, 'cpu'), false);
    assert.equal(podIsLimited({ containers: [limited], initContainers: [c('i')] }, 'cpu'), false);
    assert.equal(podIsLimited({ containers: [c('b')], resources: { limits: cpu('1') } }, 'cpu'), true);
    assert.equal(podIsLimited({ containers: [c('b', undefined, cpu('0'))] }, 'cpu'), false);
  });

  const amount = fc.integer({ min: 0, max: 4000 }).map((milli) => `${milli}m`);
  const container = fc.record({
    name: fc.constant('c'),
    resources: fc.record({ requests: fc.record({ cpu: amount }) }),
    restartPolicy: fc.constantFrom(undefined, 'Always'),
  });
  test('no phase of the pod ever needs more than its effective request', () => {
    fc.assert(
      fc.property(
        fc.array(container, { maxLength: 5 }),
        fc.array(container, { minLength: 1, maxLength: 4 }),
        (inits, regular) => {
          const spec = { initContainers: inits, containers: regular } as PodSpec;
          const milli = (one: { resources: { requests: { cpu: string } } }) =>
            Number.parseInt(one.resources.requests.cpu, 10);
          const phases: number[] = [];
          let sidecars = 0;
          for (const one of inits) {
            if (one.restartPolicy === 'Always') sidecars += milli(one);
            phases.push(sidecars + (one.restartPolicy === 'Always' ? 0 : milli(one)));
          }
          phases.push(sidecars + regular.reduce((sum, one) => sum + milli(one), 0));
          assert.equal(milliCpu(podRequests(spec)), Math.max(...phases));
        },
      ),
    );
  });
});

suite('quality of service', () => {
  const guaranteed = c('g', both('1', '1Gi'), both('1', '1Gi'));
  const table: [string, PodSpec, QosClass][] = [
    ['nothing asked', { containers: [c('a')] }, 'BestEffort'],
    ['zeros are nothing', { containers: [c('a', both('0', '0'), both('0', '0'))] }, 'BestEffort'],
    [
      'other resources do not count',
      { containers: [c('a', { 'ephemeral-storage': '1Gi' }, { 'example.com/gpu': '1' })] },
      'BestEffort',
    ],
    ['requests equal limits', { containers: [guaranteed] }, 'Guaranteed'],
    [
      'differently written equals',
      { containers: [c('a', both('1000m', '1024Mi'), both('1', '1Gi'))] },
      'Guaranteed',
    ],
    ['limits only', { containers: [c('a', undefined, both('1', '1Gi'))] }, 'Guaranteed'],
    ['no memory limit', { containers: [c('a', cpu('1'), cpu('1'))] }, 'Burstable'],
    ['request below limit', { containers: [c('a', both('500m', '1Gi'), both('1', '1Gi'))] }, 'Burstable'],
    ['one container without limits', { containers: [guaranteed, c('b')] }, 'Burstable'],
    ['an init container without limits', { containers: [guaranteed], initContainers: [c('i')] }, 'Burstable'],
    [
      'an init container alone asks',
      { containers: [c('a')], initContainers: [c('i', cpu('1'))] },
      'Burstable',
    ],
    [
      'ephemeral containers do not count',
      { containers: [guaranteed], ephemeralContainers: [{ name: 'e', image: 'i' }] },
      'Guaranteed',
    ],
    [
      'pod-level values decide',
      { containers: [c('a')], resources: { requests: both('1', '1Gi'), limits: both('1', '1Gi') } },
      'Guaranteed',
    ],
    [
      'pod-level values decide, whatever containers say',
      { containers: [guaranteed], resources: { requests: cpu('1') } },
      'Burstable',
    ],
  ];
  for (const [name, spec, expected] of table) {
    test(`${name}: ${expected}`, () => assert.equal(podQosClass(spec), expected));
  }

  test('a Guaranteed pod has equal effective requests and limits', () => {
    const list = fc.record(
      { cpu: fc.constantFrom('0', '1', '500m'), memory: fc.constantFrom('0', '1Gi', '64Mi') },
      { requiredKeys: [] },
    );
    const one = fc.record({
      name: fc.constant('c'),
      resources: fc.record({ requests: list, limits: list }, { requiredKeys: [] }),
    });
    fc.assert(
      fc.property(fc.array(one, { minLength: 1, maxLength: 3 }), (containers) => {
        const spec = { containers } as PodSpec;
        if (podQosClass(spec) !== 'Guaranteed') return;
        const limits = podLimits(spec);
        for (const [name, request] of podRequests(spec)) {
          const limit = limits.get(name);
          assert.ok(limit && compareQuantities(limit, request) === 0);
        }
      }),
    );
  });
});

suite('oom score', () => {
  const gibi = 2 ** 30;
  const score = (spec: PodSpec, name: string, priority?: Partial<PodSpec>) => {
    const all = [...spec.containers, ...(spec.initContainers ?? [])];
    const container = all.find((one) => one.name === name);
    assert.ok(container);
    return oomScoreAdj({ metadata: {}, spec: { ...spec, ...priority } }, container, 8 * gibi);
  };
  const burstable = (memory: string) => c('b', { memory });

  test('by class', () => {
    assert.equal(score({ containers: [c('a')] }, 'a'), 1000);
    assert.equal(score({ containers: [c('g', both('1', '1Gi'), both('1', '1Gi'))] }, 'g'), -997);
    assert.equal(score({ containers: [burstable('1Gi')] }, 'b'), 875);
    assert.equal(score({ containers: [burstable('8Gi')] }, 'b'), 3);
    assert.equal(score({ containers: [burstable('1')] }, 'b'), 999);
  });

  test('node-critical pods are kept like Guaranteed ones', () => {
    const critical = { priority: 2_000_001_000, priorityClassName: 'system-node-critical' };
    assert.equal(score({ containers: [c('a')] }, 'a', critical), -997);
    assert.equal(score({ containers: [c('a')] }, 'a', { priorityClassName: 'system-node-critical' }), 1000);
    assert.equal(
      score({ containers: [c('a')] }, 'a', {
        priority: 2_000_000_000,
        priorityClassName: 'system-cluster-critical',
      }),
      1000,
    );
  });

  test('a sidecar scores no higher than the smallest regular container', () => {
    const sidecar = c('s', { memory: '128Mi' }, undefined, 'Always');
    const spec = { initContainers: [sidecar], containers: [burstable('4Gi'), c('d', { memory: '2Gi' })] };
    assert.equal(score(spec, 's'), 750);
    assert.equal(score({ ...spec, containers: [c('b', { memory: '1Mi' })] }, 's'), 985);
  });

  test('unclaimed pod-level memory is shared by what runs together', () => {
    const spec = {
      containers: [c('a', { memory: '1Gi' }), c('z')],
      resources: { requests: { memory: '3Gi' } },
    };
    assert.equal(score(spec, 'a'), 750);
    assert.equal(score(spec, 'z'), 875);
  });

  test('always within the bounds of Burstable', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2 ** 40 }),
        fc.integer({ min: 0, max: 2 ** 40 }),
        (request, node) => {
          const container = burstable(String(request));
          const value = oomScoreAdj({ spec: { containers: [container] } }, container, node);
          assert.ok(value >= 3 && value <= 999);
        },
      ),
    );
  });
});
