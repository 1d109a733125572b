import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { VolumeMount } from '../kubernetes/types.ts';
import { ContainerMountError, type ContainerMountsRequest, planContainerMounts } from './container-mounts.ts';
import type { MountedVolume } from './volume-kind.ts';

const data: MountedVolume = {
  name: 'data',
  kind: 'emptyDir',
  hostPath: '/pods/u/volumes/kubernetes.io~empty-dir/data',
  readOnly: false,
  relabels: true,
};
const host: MountedVolume = {
  name: 'host',
  kind: 'hostPath',
  hostPath: '/srv',
  readOnly: false,
  relabels: false,
};
const fixed: MountedVolume = { ...data, name: 'fixed', readOnly: true };

function plan(mounts: VolumeMount[], more: Partial<ContainerMountsRequest> = {}) {
  return planContainerMounts({
    container: { name: 'main', volumeMounts: mounts },
    volumes: [data, host, fixed],
    lookup: (name) => ({ POD: 'web-1', EMPTY: '' })[name],
    recursiveReadOnlySupported: true,
    imageReference: (volume) => `sha256:${volume}`,
    relabel: () => true,
    ...more,
  });
}

describe('container mounts', () => {
  it('keep the order of the spec and take the path of their volume', () => {
    const mounts = plan([
      { name: 'host', mountPath: '/host', readOnly: true, mountPropagation: 'HostToContainer' },
      { name: 'data', mountPath: 'relative/path' },
      { name: 'fixed', mountPath: '/fixed', mountPropagation: 'None' },
      { name: 'data', mountPath: '/both', mountPropagation: 'Bidirectional' },
    ]);
    const common = { recursiveReadOnly: false };
    assert.deepEqual(mounts, [
      {
        ...common,
        volume: 'host',
        index: 0,
        containerPath: '/host',
        hostPath: '/srv',
        readOnly: true,
        propagation: 'HostToContainer',
        selinuxRelabel: false,
      },
      {
        ...common,
        volume: 'data',
        index: 1,
        containerPath: '/relative/path',
        hostPath: data.hostPath,
        readOnly: false,
        propagation: 'None',
        selinuxRelabel: true,
      },
      {
        ...common,
        volume: 'fixed',
        index: 2,
        containerPath: '/fixed',
        hostPath: data.hostPath,
        readOnly: true,
        propagation: 'None',
        selinuxRelabel: true,
      },
      {
        ...common,
        volume: 'data',
        index: 3,
        containerPath: '/both',
        hostPath: data.hostPath,
        readOnly: false,
        propagation: 'Bidirectional',
        selinuxRelabel: true,
      },
    ]);
    assert.deepEqual(
      planContainerMounts({ ...({} as ContainerMountsRequest), container: { name: 'a' }, volumes: [] }),
      [],
    );
  });

  for (const [what, mount, subPath] of [
    ['as written', { subPath: 'a/b' }, 'a/b'],
    ['cleaned', { subPath: './a//b/.' }, 'a/b'],
    ['expanded', { subPathExpr: 'logs/$(POD)' }, 'logs/web-1'],
    ['absent when empty', { subPath: '' }, undefined],
    ['absent when it is the volume itself', { subPath: '.' }, undefined],
    ['with dots in names', { subPath: '..a/b..' }, '..a/b..'],
  ] as const) {
    it(`have a sub-path ${what}`, () => {
      assert.equal(plan([{ name: 'data', mountPath: '/d', ...mount }])[0]!.subPath, subPath);
    });
  }

  for (const [what, mount, message] of [
    ['an unknown volume', { name: 'other' }, /cannot find volume "other"/],
    ['an absolute sub-path', { subPath: '/etc' }, /must not be an absolute path/],
    ['a sub-path with ..', { subPath: 'a/../../b' }, /must not contain '..'/],
    ['an unknown variable', { subPathExpr: '$(NOPE)' }, /missing value for "NOPE"/],
    ['an empty variable', { subPathExpr: '$(EMPTY)' }, /missing value for "EMPTY"/],
    ['an unknown propagation', { mountPropagation: 'Both' }, /invalid mount propagation "Both"/],
    ['a writable recursive read-only mount', { recursiveReadOnly: 'Enabled' }, /the mount is not read-only/],
    [
      'a propagating recursive read-only mount',
      { recursiveReadOnly: 'Enabled', readOnly: true, mountPropagation: 'HostToContainer' },
      /its mountPropagation is HostToContainer/,
    ],
  ] as const) {
    it(`refuse ${what}`, () => {
      assert.throws(
        () => plan([{ name: 'data', mountPath: '/d', ...mount }]),
        (error) => {
          assert.ok(error instanceof ContainerMountError);
          assert.match(error.message, message);
          return true;
        },
      );
    });
  }

  it('are recursively read-only when asked for and possible', () => {
    const mount = { name: 'data', mountPath: '/d', readOnly: true };
    const of = (recursiveReadOnly: string, recursiveReadOnlySupported: boolean) =>
      plan([{ ...mount, recursiveReadOnly }], { recursiveReadOnlySupported })[0]!.recursiveReadOnly;
    assert.equal(of('Enabled', true), true);
    assert.equal(of('IfPossible', true), true);
    assert.equal(of('IfPossible', false), false);
    assert.equal(of('Disabled', true), false);
    assert.throws(() => of('Enabled', false), /runtime does not support it/);
  });
});
