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
