import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Container } from '../../kubernetes/types.ts';
import { type Given, securityOf } from './translation-fixtures.ts';

suite('container security', () => {
  test('what nobody says', () => {
    const security = securityOf(undefined);
    assert.deepEqual(security.runAsUser, { value: 0n });
    assert.deepEqual(security.seccomp, { profileType: 1, localhostRef: '' });
    assert.equal(security.capabilities, undefined);
    assert.equal(security.apparmor, undefined);
    assert.equal(security.noNewPrivs, false);
    assert.equal(security.maskedPaths.length, 12);
    assert.deepEqual(security.readonlyPaths, [
      '/proc/bus',
      '/proc/fs',
      '/proc/irq',
      '/proc/sys',
      '/proc/sysrq-trigger',
    ]);
  });

  test('the container wins over the pod, the pod over the image', () => {
    const imageUser = { uid: 3n };
    const spec = { securityContext: { runAsUser: 2, runAsGroup: 20, seLinuxOptions: { type: 'p' } } };
    assert.deepEqual(securityOf(undefined, { imageUser }).runAsUser, { value: 3n });
    assert.deepEqual(securityOf(undefined, { imageUser, spec }).runAsUser, { value: 2n });
    const own = securityOf(
      { runAsUser: 1, runAsGroup: 10, seLinuxOptions: { type: 'c' } },
      { imageUser, spec },
    );
    assert.deepEqual(
      [own.runAsUser, own.runAsGroup, own.selinuxOptions?.type],
      [{ value: 1n }, { value: 10n }, 'c'],
    );
    const named = securityOf(undefined, { imageUser: { username: 'nginx' } });
    assert.deepEqual([named.runAsUser, named.runAsUsername], [undefined, 'nginx']);
    assert.equal(securityOf({ runAsUser: 1 }, { imageUser: { username: 'nginx' } }).runAsUsername, '');
  });

  test('runAsNonRoot is kept', () => {
    const refused: [Container['securityContext'], Given, RegExp][] = [
      [
        { runAsNonRoot: true, runAsUser: 0 },
        {},
        /^container's runAsUser breaks non-root policy \(pod: "web_shop\(u-1\)", container: main\)$/,
      ],
      [{ runAsNonRoot: true }, {}, /image will run as root/],
      [{ runAsNonRoot: true }, { imageUser: { uid: 0n } }, /image will run as root/],
      [undefined, { spec: { securityContext: { runAsNonRoot: true } } }, /image will run as root/],
      [
        { runAsNonRoot: true },
        { imageUser: { username: 'app' } },
        /image has non-numeric user \(app\), cannot verify user is non-root/,
      ],
    ];
    for (const [own, given, message] of refused) {
      assert.throws(() => securityOf(own, given), { name: 'ContainerConfigError', message });
    }
    securityOf({ runAsNonRoot: true, runAsUser: 1 });
    securityOf({ runAsNonRoot: true }, { imageUser: { uid: 7n } });
    securityOf({ runAsNonRoot: false }, { spec: { securityContext: { runAsNonRoot: true } } });
  });

  test('seccomp', () => {
    const seccomp = (
      profile: { type: string; localhostProfile?: string } | undefined,
      seccompDefault = false,
    ) =>
      securityOf(profile ? { seccompProfile: profile } : undefined, {
        security: { rootDirectory: '/r', seccompDefault, thermalThrottlePaths: [] },
        spec: {},
      }).seccomp;
    assert.equal(seccomp(undefined, true)?.profileType, 0);
    assert.equal(seccomp({ type: 'RuntimeDefault' })?.profileType, 0);
    assert.equal(seccomp({ type: 'Unconfined' }, true)?.profileType, 1);
    assert.deepEqual(seccomp({ type: 'Localhost', localhostProfile: 'a/b.json' }), {
      profileType: 2,
      localhostRef: '/r/seccomp/a/b.json',
    });
    assert.throws(() => seccomp({ type: 'Localhost' }), { name: 'ContainerConfigError' });
    const spec = { securityContext: { seccompProfile: { type: 'RuntimeDefault' } } };
    assert.equal(securityOf(undefined, { spec }).seccomp?.profileType, 0);
  });

  test('AppArmor', () => {
    const apparmor = (type: string, localhostProfile?: string) => {
      const { apparmor, apparmorProfile } = securityOf({
        appArmorProfile: { type, ...(localhostProfile ? { localhostProfile } : {}) },
      });
      return [apparmor?.profileType, apparmor?.localhostRef, apparmorProfile];
    };
    assert.deepEqual(apparmor('RuntimeDefault'), [0, '', 'runtime/default']);
    assert.deepEqual(apparmor('Unconfined'), [1, '', 'unconfined']);
    assert.deepEqual(apparmor('Localhost', 'p'), [2, 'p', 'localhost/p']);
    assert.throws(() => apparmor('Localhost'), { name: 'ContainerConfigError' });
  });

  test('AppArmor by annotation, as static pods from before the fields have it', () => {
    const annotated = (value: string, own?: Container['securityContext'], spec = {}) => {
      const name = 'container.apparmor.security.beta.kubernetes.io/main';
      const { apparmor, apparmorProfile } = securityOf(own, {
        metadata: { annotations: { [name]: value } },
        spec,
      });
      return [apparmor?.profileType, apparmor?.localhostRef, apparmorProfile];
    };
    assert.deepEqual(annotated('runtime/default'), [0, '', 'runtime/default']);
    assert.deepEqual(annotated('unconfined'), [1, '', 'unconfined']);
    assert.deepEqual(annotated('localhost/p'), [2, 'p', 'localhost/p']);
    const onPod = { securityContext: { appArmorProfile: { type: 'RuntimeDefault' } } };
    assert.deepEqual(annotated('unconfined', undefined, onPod), [1, '', 'unconfined']);
    const field = { appArmorProfile: { type: 'RuntimeDefault' } };
    assert.deepEqual(annotated('unconfined', field), [0, '', 'runtime/default']);
    assert.throws(() => annotated('nonsense'), { name: 'ContainerConfigError' });
  });

  test('[sig-node] Security Context When creating a container with runAsNonRoot [NodeConformance] should run with an image specified user ID', () => {
    const own = { runAsNonRoot: true };
    assert.deepEqual(securityOf(own, { imageUser: { uid: 1234n } }).runAsUser, { value: 1234n });
    assert.deepEqual(securityOf({ ...own, runAsUser: 5 }, { imageUser: { username: 'app' } }).runAsUser, {
      value: 5n,
    });
  });

  test('groups of the pod belong to every container', () => {
    const spec = {
      securityContext: {
        fsGroup: 30,
        supplementalGroups: [40, 50],
        supplementalGroupsPolicy: 'Strict',
        runAsGroup: 20,
      },
    };
    const security = securityOf(undefined, { spec, volumeGids: [35] });
    assert.deepEqual(security.supplementalGroups, [30n, 35n, 40n, 50n]);
    assert.equal(security.supplementalGroupsPolicy, 1);
    assert.deepEqual(security.runAsGroup, { value: 20n });
    const none = securityOf(undefined);
    assert.deepEqual(
      [none.supplementalGroups, none.supplementalGroupsPolicy, none.runAsGroup],
      [[], 0, undefined],
    );
  });

  test('namespaces are those of the sandbox', () => {
    const namespaces = (spec: NonNullable<Given['spec']>) => {
      const { network, pid, ipc } = securityOf(undefined, { spec }).namespaceOptions ?? {};
      return { network, pid, ipc };
    };
    assert.deepEqual(namespaces({}), { network: 0, pid: 1, ipc: 0 });
    assert.deepEqual(namespaces({ hostNetwork: true, hostPID: true, hostIPC: true }), {
      network: 2,
      pid: 2,
      ipc: 2,
    });
    assert.deepEqual(namespaces({ shareProcessNamespace: true }), { network: 0, pid: 0, ipc: 0 });
    assert.equal(namespaces({ hostPID: true, shareProcessNamespace: false }).pid, 2);
  });

  test('settings of the pod as a whole that containers do not take over', () => {
    const spec = { securityContext: { sysctls: [{ name: 'a', value: 'b' }], fsGroupChangePolicy: 'Always' } };
    assert.deepEqual(securityOf(undefined, { spec }), securityOf(undefined));
  });

  test('only an explicit false takes privileges away or leaves them out', () => {
    assert.equal(securityOf({ allowPrivilegeEscalation: true }).noNewPrivs, false);
    assert.equal(securityOf({}).noNewPrivs, false);
    const { privileged, readonlyRootfs } = securityOf({ privileged: false, readOnlyRootFilesystem: false });
    assert.deepEqual([privileged, readonlyRootfs], [false, false]);
    assert.equal(securityOf({ procMount: 'Default' }).maskedPaths.length, 12);
  });

  test('the rest', () => {
    const security = securityOf({
      privileged: true,
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      procMount: 'Unmasked',
      capabilities: { add: ['NET_ADMIN'], drop: ['ALL'] },
    });
    assert.equal(security.privileged && security.noNewPrivs && security.readonlyRootfs, true);
    assert.deepEqual([security.maskedPaths, security.readonlyPaths], [[], []]);
    assert.deepEqual(security.capabilities, {
      addCapabilities: ['NET_ADMIN'],
      dropCapabilities: ['ALL'],
      addAmbientCapabilities: [],
    });
    const thermalThrottlePaths = ['/sys/devices/system/cpu/cpu0/thermal_throttle'];
    const hidden = securityOf(undefined, {
      security: { rootDirectory: '/', seccompDefault: false, thermalThrottlePaths },
    });
    assert.equal(hidden.maskedPaths.at(-1), thermalThrottlePaths[0]);
    assert.deepEqual(securityOf(undefined, { volumeGids: [5] }).supplementalGroups, [5n]);
  });
});
