/** Pods that the node refuses before anything is made of them. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { Pod } from '../../../src/kubernetes/types.ts';
import { idle, shellPod } from '../../e2e/agent.ts';
import { Scenarios } from './scenarios.ts';

const scenarios = new Scenarios();
const { agent } = scenarios;

const hasAppArmor = (): boolean => {
  try {
    return readFileSync('/sys/module/apparmor/parameters/enabled', 'utf8').startsWith('Y');
  } catch {
    return false;
  }
};

describe('AppArmor on a kernel without it', () => {
  for (const [name, spec, annotations, title] of [
    [
      'armored',
      { securityContext: { appArmorProfile: { type: 'RuntimeDefault' } } },
      {},
      '[sig-node] AppArmor [NodeConformance] when running without AppArmor should reject a pod with an AppArmor profile in field',
    ],
    [
      'annotated',
      {},
      { 'container.apparmor.security.beta.kubernetes.io/main': 'runtime/default' },
      '[sig-node] AppArmor [NodeConformance] when running without AppArmor should reject a pod with an AppArmor profile in annotation',
    ],
  ] as const) {
    const manifest = shellPod(name, idle, spec);
    scenarios.pod(name, { ...manifest, metadata: { name, annotations } });
    it(title, { skip: hasAppArmor() ? 'this kernel has AppArmor' : false }, async () => {
      const { status, metadata } = await scenarios.phase(name, 'Failed');
      assert.equal(status?.reason, 'AppArmor');
      assert.match(status?.message ?? '', /AppArmor is not enabled on the host/);
      assert.deepEqual(await agent.instances(metadata.uid), []);
    });
  }
});

describe('sysctls', () => {
  const sysctls = (...names: string[]): Partial<Pod['spec']> => ({
    securityContext: { sysctls: names.map((name) => ({ name, value: '1' })) },
  });
  scenarios.pod(
    'no-sysctls',
    shellPod('no-sysctls', idle, sysctls('foo-', 'kernel.shmmax', 'safe-and-unsafe', 'bar..')),
  );
  it('[sig-node] Sysctls [LinuxOnly] [NodeConformance] should reject invalid sysctls [Conformance]', async () => {
    await agent.eventually('refused', async () => /no-sysctls\.json/.test(agent.log));
    const told = agent.log.slice(agent.log.indexOf('no-sysctls.json')).split('\n').slice(0, 60).join('\n');
    for (const index of [0, 3]) assert.match(told, new RegExp(`sysctls\\[${index}\\]\\.name`));
    assert.doesNotMatch(told, /sysctls\[1\]/);
    assert.equal(await agent.pod('no-sysctls'), undefined);
  });
});
