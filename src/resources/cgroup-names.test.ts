import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  cgroupParent,
  cgroupPath,
  kubepodsElements,
  podElements,
  podUidOf,
  qosClasses,
  qosElements,
  rootElements,
  unmanagedCgroupParent,
} from './cgroup-names.ts';

const uid = '0f5e-11aa';
const none = rootElements('/');
const named = rootElements('/kubelet-test/');

const table = [
  { of: kubepodsElements(none), cgroupfs: '/kubepods', systemd: '/kubepods.slice' },
  {
    of: qosElements(none, 'Burstable'),
    cgroupfs: '/kubepods/burstable',
    systemd: '/kubepods.slice/kubepods-burstable.slice',
  },
  {
    of: qosElements(none, 'BestEffort'),
    cgroupfs: '/kubepods/besteffort',
    systemd: '/kubepods.slice/kubepods-besteffort.slice',
  },
  {
    of: podElements(none, 'Guaranteed', uid),
    cgroupfs: '/kubepods/pod0f5e-11aa',
    systemd: '/kubepods.slice/kubepods-pod0f5e_11aa.slice',
  },
  {
    of: podElements(none, 'Burstable', uid),
    cgroupfs: '/kubepods/burstable/pod0f5e-11aa',
    systemd: '/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0f5e_11aa.slice',
  },
  {
    of: podElements(none, 'BestEffort', uid),
    cgroupfs: '/kubepods/besteffort/pod0f5e-11aa',
    systemd: '/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod0f5e_11aa.slice',
  },
  {
    of: podElements(named, 'Guaranteed', uid),
    cgroupfs: '/kubelet-test/kubepods/pod0f5e-11aa',
    systemd: '/kubelet_test.slice/kubelet_test-kubepods.slice/kubelet_test-kubepods-pod0f5e_11aa.slice',
  },
];

describe('cgroup names', () => {
  for (const { of, cgroupfs, systemd } of table) {
    it(`spell ${of.join(' > ')}`, () => {
      assert.equal(cgroupPath('cgroupfs', of), cgroupfs);
      assert.equal(cgroupPath('systemd', of), systemd);
      assert.equal(cgroupParent('cgroupfs', of), cgroupfs);
      assert.equal(cgroupParent('systemd', of), systemd.slice(systemd.lastIndexOf('/') + 1));
    });
  }

  it('lead back to the pod, whatever driver, root and class', () => {
    const uids = fc.oneof(fc.uuid(), fc.stringMatching(/^[0-9a-f]{32}$/));
    fc.assert(
      fc.property(
        uids,
        fc.constantFrom(...qosClasses),
        fc.constantFrom('/', '/a/b-c'),
        (podUid, qos, cgroupRoot) => {
          const root = rootElements(cgroupRoot);
          for (const driver of ['cgroupfs', 'systemd'] as const) {
            const directory = cgroupPath(driver, podElements(root, qos, podUid))
              .split('/')
              .at(-1)!;
            assert.equal(podUidOf(driver, root, qos, directory), podUid);
          }
        },
      ),
    );
  });

  it('tell classes and foreign cgroups from pods', () => {
    for (const foreign of ['burstable', 'besteffort', 'pod', 'other', 'kubepods-burstable.slice']) {
      assert.equal(podUidOf('cgroupfs', none, 'Guaranteed', foreign), undefined);
    }
    for (const foreign of ['kubepods-burstable.slice', 'kubepods-pod.slice', 'pod1', 'kubepods-pod1.scope']) {
      assert.equal(podUidOf('systemd', none, 'Guaranteed', foreign), undefined);
    }
    assert.equal(podUidOf('systemd', none, 'Guaranteed', 'kubepods-burstable-pod1.slice'), undefined);
  });
});

describe('the parent of containers that no tree is kept for', () => {
  for (const [root, cgroupfs, systemd] of [
    ['/', '', ''],
    ['', '', ''],
    ['/pods', '/pods', 'pods.slice'],
    ['/my-pods/all', '/my-pods/all', 'my_pods-all.slice'],
  ] as const) {
    it(`below ${JSON.stringify(root)} is spelled as the driver wants it`, () => {
      assert.equal(unmanagedCgroupParent('cgroupfs', root), cgroupfs);
      assert.equal(unmanagedCgroupParent('systemd', root), systemd);
    });
  }
});
