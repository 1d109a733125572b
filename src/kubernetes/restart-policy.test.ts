import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import type { ContainerKind } from './init-containers.ts';
import {
  effectiveRestartPolicy,
  type RestartDecision,
  restartDecision,
  restartsAfterProbeFailure,
} from './restart-policy.ts';

const rule = (action: string, operator: string, ...values: number[]) => ({
  action,
  exitCodes: { operator, values },
});

suite('restart policy', () => {
  type Row = [
    string,
    ContainerKind,
    Parameters<typeof restartDecision>[0],
    string,
    number | undefined,
    RestartDecision,
  ];
  const rows: Row[] = [
    ['Always, success', 'regular', {}, 'Always', 0, 'Restart'],
    ['Always, failure', 'regular', {}, 'Always', 1, 'Restart'],
    ['OnFailure, success', 'regular', {}, 'OnFailure', 0, 'Stay'],
    ['OnFailure, failure', 'regular', {}, 'OnFailure', 137, 'Restart'],
    ['OnFailure, lost by the runtime', 'regular', {}, 'OnFailure', undefined, 'Restart'],
    ['Never, failure', 'regular', {}, 'Never', 1, 'Stay'],
    ['Never, lost by the runtime', 'regular', {}, 'Never', undefined, 'Stay'],
    ['the container policy wins', 'regular', { restartPolicy: 'Never' }, 'Always', 1, 'Stay'],
    [
      'the container policy wins the other way',
      'regular',
      { restartPolicy: 'OnFailure' },
      'Never',
      1,
      'Restart',
    ],
    ['init success, Always', 'init', {}, 'Always', 0, 'Stay'],
    ['init failure, Always', 'init', {}, 'Always', 1, 'Restart'],
    ['init failure, Never', 'init', {}, 'Never', 1, 'Stay'],
    ['sidecar, pod Never', 'sidecar', { restartPolicy: 'Always' }, 'Never', 0, 'Restart'],
    ['ephemeral', 'ephemeral', {}, 'Always', 1, 'Stay'],
    [
      'rule In matches',
      'regular',
      { restartPolicyRules: [rule('Restart', 'In', 42)] },
      'Never',
      42,
      'Restart',
    ],
    [
      'rule In does not match',
      'regular',
      { restartPolicyRules: [rule('Restart', 'In', 42)] },
      'Never',
      1,
      'Stay',
    ],
    [
      'rule NotIn matches',
      'regular',
      { restartPolicyRules: [rule('Restart', 'NotIn', 0)] },
      'Never',
      3,
      'Restart',
    ],
    [
      'rule NotIn does not match',
      'regular',
      { restartPolicyRules: [rule('Restart', 'NotIn', 0)] },
      'Never',
      0,
      'Stay',
    ],
    [
      'no rule matches: own policy',
      'regular',
      { restartPolicy: 'OnFailure', restartPolicyRules: [rule('Restart', 'In', 42)] },
      'Never',
      1,
      'Restart',
    ],
    [
      'the first matching rule decides',
      'regular',
      { restartPolicyRules: [rule('RestartAllContainers', 'In', 5), rule('Restart', 'In', 5)] },
      'Never',
      5,
      'RestartAllContainers',
    ],
    [
      'init success can restart the pod',
      'init',
      { restartPolicyRules: [rule('RestartAllContainers', 'In', 0)] },
      'Never',
      0,
      'RestartAllContainers',
    ],
    [
      'init success is not run again by a rule',
      'init',
      { restartPolicyRules: [rule('Restart', 'In', 0)] },
      'Never',
      0,
      'Stay',
    ],
    [
      'a lost container matches no rule',
      'regular',
      { restartPolicyRules: [rule('Restart', 'NotIn', 0)] },
      'Never',
      undefined,
      'Stay',
    ],
  ];
  for (const [name, kind, container, podPolicy, exitCode, expected] of rows) {
    test(name, () =>
      assert.equal(restartDecision(container, kind, { restartPolicy: podPolicy }, exitCode), expected),
    );
  }

  test('a failed probe asks the policy only', () => {
    const restartPolicyRules = [rule('Restart', 'In', 137)];
    assert.equal(
      restartsAfterProbeFailure({ restartPolicyRules }, 'regular', { restartPolicy: 'Never' }),
      false,
    );
    assert.equal(restartsAfterProbeFailure({}, 'regular', { restartPolicy: 'OnFailure' }), true);
    assert.equal(
      restartsAfterProbeFailure({ restartPolicy: 'Never' }, 'regular', { restartPolicy: 'Always' }),
      false,
    );
    assert.equal(restartsAfterProbeFailure({}, 'sidecar', { restartPolicy: 'Never' }), true);
  });

  test('without rules, the decision follows the effective policy', () => {
    const policy = fc.constantFrom('Always', 'OnFailure', 'Never', undefined);
    fc.assert(
      fc.property(policy, policy, fc.integer({ min: 0, max: 255 }), (own, pod, code) => {
        const container = own === undefined ? {} : { restartPolicy: own };
        const spec = pod === undefined ? {} : { restartPolicy: pod };
        const effective = effectiveRestartPolicy(container, 'regular', spec);
        const restarts = effective === 'Always' || (effective === 'OnFailure' && code !== 0);
        assert.equal(restartDecision(container, 'regular', spec, code), restarts ? 'Restart' : 'Stay');
      }),
    );
  });
});
