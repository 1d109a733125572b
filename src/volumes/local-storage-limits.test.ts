import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PodSpec, Volume } from '../kubernetes/types.ts';
import {
  exceededLimit,
  hasLocalStorageLimits,
  type LocalStorageFigures,
  podUsage,
} from './local-storage-limits.ts';

const mebi = 2 ** 20;

function spec(volumes: Volume[], limits: Record<string, string | undefined> = { main: undefined }): PodSpec {
  return {
    terminationGracePeriodSeconds: 30,
    restartPolicy: 'Always',
    dnsPolicy: 'Default',
    volumes,
    containers: Object.entries(limits).map(([name, limit]) => ({
      name,
      ...(limit && { resources: { limits: { 'ephemeral-storage': limit } } }),
    })),
  };
}

/** In MiB. */
function figures(
  volumes: Record<string, number>,
  logs: Record<string, number> = {},
  layers: Record<string, number> = {},
): LocalStorageFigures {
  const bytes = (amounts: Record<string, number>) =>
    new Map(Object.entries(amounts).map(([name, amount]) => [name, amount * mebi] as const));
  return { volumes: bytes(volumes), logs: bytes(logs), writableLayers: bytes(layers) };
}

const scratch: Volume = { name: 'scratch', emptyDir: { sizeLimit: '10Mi' } };

describe('what is watched', () => {
  const cases: [string, PodSpec, boolean][] = [
    ['no limit', spec([{ name: 'a', emptyDir: {} }]), false],
    ['a size limit', spec([scratch]), true],
    ['a size limit of nothing', spec([{ name: 'a', emptyDir: { sizeLimit: '0' } }]), false],
    ['a container limit', spec([], { main: '1Gi' }), true],
  ];
  for (const [what, pod, expected] of cases) {
    it(`${what}: ${expected}`, () => assert.equal(hasLocalStorageLimits(pod), expected));
  }
});

describe('a limit that is exceeded', () => {
  const cases: [string, PodSpec, LocalStorageFigures, string | undefined][] = [
    ['a volume at its limit', spec([scratch]), figures({ scratch: 10 }), undefined],
    [
      'a volume over its limit',
      spec([scratch]),
      figures({ scratch: 10.5 }),
      'emptydirfs.limit Usage of EmptyDir volume "scratch" exceeds the limit "10Mi". ',
    ],
    [
      'a limit the user wrote in another way',
      spec([{ name: 'scratch', emptyDir: { sizeLimit: '1024Ki' } }]),
      figures({ scratch: 2 }),
      'emptydirfs.limit Usage of EmptyDir volume "scratch" exceeds the limit "1Mi". ',
    ],
    [
      'logs and layer of a container',
      spec([], { main: '10Mi', other: '100Mi' }),
      figures({}, { main: 6 }, { main: 6 }),
      'ephemeralcontainerfs.limit Container main exceeded its local ephemeral storage limit "10Mi". ',
    ],
    [
      'everything together',
      spec([{ name: 'data', emptyDir: {} }], { main: '10Mi', other: '10Mi' }),
      figures({ data: 15 }, { main: 3 }, { other: 3 }),
      'ephemeralpodfs.limit Pod ephemeral local storage usage exceeds the total limit of containers 20Mi. ',
    ],
    [
      'memory is not the disk',
      spec([{ name: 'data', emptyDir: { medium: 'Memory' } }], { main: '10Mi' }),
      figures({ data: 15 }),
      undefined,
    ],
    [
      'a limit of 0 on a container',
      spec([], { main: '0', other: '5Mi' }),
      figures({}, { main: 1 }),
      undefined,
    ],
    [
      'a volume before the pod and the container',
      spec([scratch], { main: '1Mi' }),
      figures({ scratch: 11 }, { main: 5 }),
      'emptydirfs.limit Usage of EmptyDir volume "scratch" exceeds the limit "10Mi". ',
    ],
  ];
  for (const [what, pod, amounts, expected] of cases) {
    it(what, () => {
      const found = exceededLimit(pod, amounts);
      assert.equal(found && `${found.signal} ${found.message}`, expected);
    });
  }

  it('counts config maps, which lie on the disk, and no secrets, which do not', () => {
    const volumes: Volume[] = [
      { name: 'config', configMap: { name: 'c' } },
      { name: 'secret', secret: { secretName: 's' } },
      { name: 'data', emptyDir: {} },
    ];
    assert.equal(podUsage(spec(volumes), figures({ config: 1, secret: 2, data: 4 }, { a: 8 })), 13 * mebi);
  });
});
