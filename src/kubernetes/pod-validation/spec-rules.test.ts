import { describe } from 'node:test';
import { testCases } from './pod-cases.ts';

describe('the spec as a whole', () => {
  testCases([
    [{ 'spec.restartPolicy': 'Sometimes' }, 'NotSupported spec.restartPolicy'],
    [{ 'spec.activeDeadlineSeconds': 1 }],
    [{ 'spec.activeDeadlineSeconds': 0 }, 'Invalid spec.activeDeadlineSeconds'],
    [{ 'spec.activeDeadlineSeconds': 2 ** 31 }, 'Invalid spec.activeDeadlineSeconds'],
    [{ 'spec.terminationGracePeriodSeconds': -1 }],
    [{ 'spec.serviceAccountName': 'A' }, 'Invalid spec.serviceAccountName'],
    [{ 'spec.nodeName': 'a_b' }, 'Invalid spec.nodeName'],
    [{ 'spec.runtimeClassName': '' }, 'Invalid spec.runtimeClassName'],
    [{ 'spec.imagePullSecrets': [{}] }],
    [{ kind: 'PodList' }, 'NotSupported kind'],
    [{ apiVersion: 'v2' }, 'NotSupported apiVersion'],
  ]);
});

describe('network', () => {
  const d = 'spec.dnsConfig';
  testCases([
    [{ 'spec.hostname': 'a', 'spec.subdomain': 'b' }],
    [{ 'spec.hostname': 'a.b', 'spec.subdomain': 'B' }, 'Invalid spec.hostname', 'Invalid spec.subdomain'],
    [{ 'spec.hostnameOverride': 'a.b.c' }],
    [{ 'spec.hostnameOverride': 'a', 'spec.setHostnameAsFQDN': true }, 'Forbidden spec.hostnameOverride'],
    [{ 'spec.hostnameOverride': 'a', 'spec.hostNetwork': true }, 'Forbidden spec.hostnameOverride'],
    [{ 'spec.hostnameOverride': `${'a'.repeat(60)}.abcde` }, 'TooLong spec.hostnameOverride'],
    [{ 'spec.dnsPolicy': 'Mine' }, 'NotSupported spec.dnsPolicy'],
    [{ 'spec.dnsPolicy': 'None' }, `Required ${d}`],
    [{ 'spec.dnsPolicy': 'None', [d]: {} }, `Required ${d}.nameservers`],
    [
      {
        'spec.dnsPolicy': 'None',
        [d]: { nameservers: ['::1'], searches: ['a_b.c.', '.'], options: [{ name: 'x' }] },
      },
    ],
    [{ [d]: { nameservers: ['1.1.1.1', '1.1.1.2', '1.1.1.3', '1.1.1.4'] } }, `Invalid ${d}.nameservers`],
    [
      { [d]: { nameservers: ['1.1.1', '01.1.1.1', 'fe80::1%eth0'] } },
      ...[0, 1, 2].map((n) => `Invalid ${d}.nameservers[${n}]`),
    ],
    [{ [d]: { searches: Array(33).fill('a') } }, `Invalid ${d}.searches`],
    [
      { [d]: { searches: Array.from({ length: 20 }, () => `${'a'.repeat(60)}.${'b'.repeat(60)}`) } },
      `Invalid ${d}.searches`,
    ],
    [{ [d]: { searches: ['a b'] } }, `Invalid ${d}.searches[0]`],
    [{ [d]: { options: [{ value: 'x' }] } }, `Required ${d}.options[0].name`],
    [{ 'spec.hostAliases': [{ ip: '10.0.0.1', hostnames: ['a.b'] }] }],
    [
      { 'spec.hostAliases': [{ ip: '10.0.0', hostnames: ['a_b'] }] },
      'Invalid spec.hostAliases[0].ip',
      'Invalid spec.hostAliases[0].hostnames[0]',
    ],
  ]);
});

describe('metadata', () => {
  const owner = { apiVersion: 'v1', kind: 'K', name: 'n', uid: 'u', controller: true };
  const annotation = (key: string, value: string) => ({ 'metadata.annotations': { [key]: value } });
  testCases([
    [{ 'metadata.labels': { 'a.b/c': 'd', e: '' }, 'metadata.annotations': { 'A.b/c': 'any text' } }],
    [{ 'metadata.name': 'A' }, 'Invalid metadata.name'],
    [{ 'metadata.name': undefined }, 'Required metadata.name'],
    [{ 'metadata.name': undefined, 'metadata.generateName': 'web-' }],
    [{ 'metadata.generateName': 'web_' }, 'Invalid metadata.generateName'],
    [{ 'metadata.namespace': undefined }, 'Required metadata.namespace'],
    [{ 'metadata.namespace': 'a.b' }, 'Invalid metadata.namespace'],
    [{ 'metadata.labels': { 'a b': 'c' } }, 'Invalid metadata.labels'],
    [{ 'metadata.labels': { a: 'b c' } }, 'Invalid metadata.labels[a]'],
    [annotation('a/b/c', ''), 'Invalid metadata.annotations'],
    [annotation('a', 'x'.repeat(256 * 1024)), 'TooLong metadata.annotations'],
    [
      annotation('kubernetes.io/config.mirror', 'x'),
      'Invalid metadata.annotations[kubernetes.io/config.mirror]',
    ],
    [annotation('container.apparmor.security.beta.kubernetes.io/app', 'runtime/default')],
    [
      annotation('container.apparmor.security.beta.kubernetes.io/other', 'strict'),
      ...Array(2).fill('Invalid metadata.annotations[container.apparmor.security.beta.kubernetes.io/other]'),
    ],
    [
      annotation('seccomp.security.alpha.kubernetes.io/pod', 'localhost/../x'),
      'Invalid metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]',
    ],
    [
      annotation('controller.kubernetes.io/pod-deletion-cost', '1.5'),
      'Invalid metadata.annotations[controller.kubernetes.io/pod-deletion-cost]',
    ],
    [{ 'metadata.ownerReferences': [owner] }],
    [{ 'metadata.ownerReferences': [owner, owner] }, 'Invalid metadata.ownerReferences'],
    [
      { 'metadata.ownerReferences': [{ apiVersion: 'a/b/c' }] },
      'Invalid metadata.ownerReferences[0].apiVersion',
      ...['kind', 'name', 'uid'].map((field) => `Required metadata.ownerReferences[0].${field}`),
    ],
    [{ 'metadata.finalizers': ['a b'] }, 'Invalid metadata.finalizers[0]'],
  ]);
});
