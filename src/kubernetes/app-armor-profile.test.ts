import assert from 'node:assert/strict';
import { test } from 'node:test';
import { appArmorFault, appArmorProfileOf } from './app-armor-profile.ts';
import type { Container, Pod } from './types.ts';

function profileOf(given: { field?: string; annotation?: string; pod?: string }) {
  const { field, annotation, pod: onPod } = given;
  const container: Container = {
    name: 'web',
    ...(field && { securityContext: { appArmorProfile: { type: field } } }),
  };
  const pod: Pod = {
    metadata: {
      name: 'a',
      namespace: 'b',
      uid: 'c',
      annotations: {
        'container.apparmor.security.beta.kubernetes.io/other': 'unconfined',
        ...(annotation !== undefined && {
          'container.apparmor.security.beta.kubernetes.io/web': annotation,
        }),
      },
    },
    spec: {
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'Default',
      containers: [container],
      ...(onPod && { securityContext: { appArmorProfile: { type: onPod } } }),
    },
  };
  return appArmorProfileOf(pod, container);
}

test('the field of the container, then its annotation, then the field of the pod', () => {
  const all = { field: 'Unconfined', annotation: 'runtime/default', pod: 'RuntimeDefault' };
  assert.deepEqual(profileOf(all), { type: 'Unconfined' });
  assert.deepEqual(profileOf({ annotation: 'unconfined', pod: 'RuntimeDefault' }), { type: 'Unconfined' });
  assert.deepEqual(profileOf({ pod: 'RuntimeDefault' }), { type: 'RuntimeDefault' });
  assert.equal(profileOf({}), undefined);
});

test('annotations name profiles in their own way', () => {
  assert.deepEqual(profileOf({ annotation: 'runtime/default' }), { type: 'RuntimeDefault' });
  assert.deepEqual(profileOf({ annotation: 'localhost/k8s-deny' }), {
    type: 'Localhost',
    localhostProfile: 'k8s-deny',
  });
  assert.equal(profileOf({ annotation: '' }), undefined);
  const nonsense = profileOf({ annotation: 'nonsense' });
  assert.equal(nonsense && appArmorFault(nonsense), 'invalid AppArmor profile name: "nonsense"');
  const unnamed = profileOf({ annotation: 'localhost/' });
  assert.equal(unnamed && appArmorFault(unnamed), 'missing localhost apparmor profile name');
  assert.equal(appArmorFault({ type: 'Localhost', localhostProfile: 'p' }), undefined);
});
