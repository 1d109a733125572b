import { describe } from 'node:test';
import { testCases } from './pod-cases.ts';

const p = 'spec.securityContext';
const c = 'spec.containers[0].securityContext';

describe('security context of the pod', () => {
  testCases([
    [
      {
        [p]: {
          runAsUser: 0,
          runAsGroup: 2 ** 31 - 1,
          fsGroup: 5,
          supplementalGroups: [1],
          fsGroupChangePolicy: 'Always',
        },
      },
    ],
    [
      { [p]: { runAsUser: -1, runAsGroup: 2 ** 31, fsGroup: -1 } },
      `Invalid ${p}.runAsUser`,
      `Invalid ${p}.runAsGroup`,
      `Invalid ${p}.fsGroup`,
    ],
    [{ [p]: { supplementalGroups: [1, -1] } }, `Invalid ${p}.supplementalGroups[1]`],
    [{ [p]: { fsGroupChangePolicy: 'Never' } }, `NotSupported ${p}.fsGroupChangePolicy`],
    [{ [p]: { supplementalGroupsPolicy: 'Loose' } }, `NotSupported ${p}.supplementalGroupsPolicy`],
    [{ [p]: { seLinuxChangePolicy: 'Never' } }, `NotSupported ${p}.seLinuxChangePolicy`],
    [{ [p]: { seccompProfile: { type: 'RuntimeDefault' } } }],
    [{ [p]: { seccompProfile: {} } }, `Required ${p}.seccompProfile.type`],
    [{ [p]: { seccompProfile: { type: 'Default' } } }, `NotSupported ${p}.seccompProfile.type`],
    [{ [p]: { seccompProfile: { type: 'Localhost' } } }, `Required ${p}.seccompProfile.localhostProfile`],
    [
      { [p]: { seccompProfile: { type: 'Localhost', localhostProfile: '../x' } } },
      `Invalid ${p}.seccompProfile.localhostProfile`,
    ],
    [
      { [p]: { seccompProfile: { type: 'Unconfined', localhostProfile: 'x' } } },
      `Invalid ${p}.seccompProfile.localhostProfile`,
    ],
    [{ [p]: { appArmorProfile: { type: 'Localhost', localhostProfile: 'x' } } }],
    [
      { [p]: { appArmorProfile: { type: 'Localhost', localhostProfile: ' ' } } },
      `Required ${p}.appArmorProfile.localhostProfile`,
    ],
    [
      { [p]: { appArmorProfile: { type: 'Localhost', localhostProfile: 'x'.repeat(4096) } } },
      `TooLong ${p}.appArmorProfile.localhostProfile`,
    ],
    [
      {
        [p]: {
          sysctls: [
            { name: 'net.core.somaxconn', value: '1' },
            { name: 'kernel/sem', value: '1' },
          ],
        },
      },
    ],
    [
      {
        [p]: {
          sysctls: [
            { name: 'a', value: '' },
            { name: 'a', value: '' },
          ],
        },
      },
      `Duplicate ${p}.sysctls[1].name`,
    ],
    [
      { [p]: { sysctls: [{ value: '1' }, { name: 'A', value: '1' }] } },
      `Required ${p}.sysctls[0].name`,
      `Invalid ${p}.sysctls[1].name`,
    ],
    [
      { 'spec.hostNetwork': true, [p]: { sysctls: [{ name: 'net.core.somaxconn', value: '1' }] } },
      `Invalid ${p}.sysctls[0].name`,
    ],
    [
      {
        'spec.hostIPC': true,
        [p]: {
          sysctls: [
            { name: 'kernel.shmmax', value: '1' },
            { name: 'net.x', value: '' },
          ],
        },
      },
      `Invalid ${p}.sysctls[0].name`,
    ],
  ]);
});

describe('security context of containers', () => {
  testCases([
    [{ [c]: { privileged: true, runAsUser: 1, capabilities: { add: ['NET_ADMIN'] } } }],
    [{ [c]: { runAsUser: -1 } }, `Invalid ${c}.runAsUser`],
    [{ [c]: { privileged: true, allowPrivilegeEscalation: false } }, `Invalid ${c}`],
    [{ [c]: { capabilities: { add: ['CAP_SYS_ADMIN'] }, allowPrivilegeEscalation: false } }, `Invalid ${c}`],
    [{ [c]: { procMount: 'Default' } }],
    [{ [c]: { procMount: 'Masked' } }, `NotSupported ${c}.procMount`],
    [{ [c]: { procMount: 'Unmasked' } }, `Invalid ${c}.procMount`],
    [{ 'spec.hostUsers': false, [c]: { procMount: 'Unmasked' } }],
  ]);
});

describe('host namespaces', () => {
  testCases([
    [{ 'spec.hostPID': true, 'spec.hostIPC': true, 'spec.hostNetwork': true }],
    [{ 'spec.hostPID': true, 'spec.shareProcessNamespace': true }, 'Invalid spec.shareProcessNamespace'],
    [
      { 'spec.hostUsers': false, 'spec.hostPID': true, 'spec.hostIPC': true, 'spec.hostNetwork': true },
      'Forbidden spec.hostNetwork',
      'Forbidden spec.hostPID',
      'Forbidden spec.hostIPC',
    ],
  ]);
  testCases([[{ 'spec.hostUsers': false, 'spec.hostNetwork': true }]], {
    featureEnabled: (gate) => gate === 'UserNamespacesHostNetworkSupport',
  });
});

describe('operating systems', () => {
  const windows = { 'spec.os.name': 'windows' };
  testCases([
    [{ 'spec.os': {} }, 'Required spec.os.name'],
    [{ 'spec.os.name': 'plan9' }, 'NotSupported spec.os.name'],
    [{ ...windows, [`${p}.windowsOptions`]: { runAsUserName: 'DOMAIN\\user' } }],
    [{ ...windows, [p]: { runAsUser: 1, sysctls: [] } }, `Forbidden ${p}.runAsUser`],
    [
      { ...windows, 'spec.hostPID': true, [c]: { privileged: true } },
      'Forbidden spec.hostPID',
      `Forbidden ${c}.privileged`,
    ],
    [{ 'spec.os.name': 'linux', [c]: { windowsOptions: {} } }, `Forbidden ${c}.windowsOptions`],
    [{ [c]: { windowsOptions: { runAsUserName: 'a\\b\\c' } } }, `Invalid ${c}.windowsOptions.runAsUserName`],
    [
      { [c]: { windowsOptions: { gmsaCredentialSpec: '' } } },
      `Invalid ${c}.windowsOptions.gmsaCredentialSpec`,
    ],
    [
      { [c]: { windowsOptions: { hostProcess: true } } },
      `Invalid ${p}.windowsOptions.hostProcess`,
      'Invalid spec.hostNetwork',
    ],
    [{ ...windows, 'spec.hostNetwork': true, [p]: { windowsOptions: { hostProcess: true } } }],
  ]);
});
