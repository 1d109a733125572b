import { describe } from 'node:test';
import { testCases } from './pod-cases.ts';

describe('tolerations', () => {
  const t = 'spec.tolerations';
  testCases([
    [{ [t]: [{ operator: 'Exists' }, { key: 'a', value: 'b', effect: 'NoExecute', tolerationSeconds: 5 }] }],
    [{ [t]: [{ value: 'b' }] }, `Invalid ${t}[0].operator`],
    [{ [t]: [{ key: 'a b' }] }, `Invalid ${t}[0].key`],
    [{ [t]: [{ key: 'a', tolerationSeconds: 5 }] }, `Invalid ${t}[0].effect`],
    [{ [t]: [{ key: 'a', operator: 'Exists', value: 'b' }] }, `Invalid ${t}[0].value`],
    [{ [t]: [{ key: 'a', value: 'b c' }] }, `Invalid ${t}[0].value`],
    [{ [t]: [{ key: 'a', operator: 'In' }] }, `NotSupported ${t}[0].operator`],
    [{ [t]: [{ key: 'a', operator: 'Gt', value: '1' }] }, `NotSupported ${t}[0].operator`],
    [{ [t]: [{ key: 'a', effect: 'Never' }] }, `NotSupported ${t}[0].effect`],
  ]);
  testCases(
    [
      [{ [t]: [{ key: 'a', operator: 'Gt', value: '1' }] }],
      [{ [t]: [{ key: 'a', operator: 'Gt', value: 'x' }] }, `Invalid ${t}[0].value`],
    ],
    { featureEnabled: (gate) => gate === 'TaintTolerationComparisonOperators' },
  );
});

describe('affinity', () => {
  const required = 'requiredDuringSchedulingIgnoredDuringExecution';
  const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';
  const n = 'spec.affinity.nodeAffinity';
  const a = 'spec.affinity.podAntiAffinity';
  const node = (...terms: object[]) => ({ [`${n}.${required}`]: { nodeSelectorTerms: terms } });
  const t = `${n}.${required}.nodeSelectorTerms`;
  const expression = (operator: string, ...values: string[]) => ({
    matchExpressions: [{ key: 'k', operator, values }],
  });
  testCases([
    [node(expression('In', 'a'), expression('Exists'), expression('Gt', '1'))],
    [node(), `Required ${t}`],
    [node(expression('In')), `Required ${t}[0].matchExpressions[0].values`],
    [node(expression('Exists', 'a')), `Forbidden ${t}[0].matchExpressions[0].values`],
    [node(expression('Gt', '1', '2')), `Required ${t}[0].matchExpressions[0].values`],
    [node(expression('Is', '1')), `NotSupported ${t}[0].matchExpressions[0].operator`],
    [node({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n'] }] })],
    [
      node({ matchFields: [{ key: 'spec', operator: 'In', values: ['n'] }] }),
      `Invalid ${t}[0].matchFields[0].key`,
    ],
    [
      { [`${n}.${preferred}`]: [{ weight: 0, preference: expression('Exists') }] },
      `Invalid ${n}.${preferred}[0].weight`,
    ],
    [
      {
        [`${a}.${required}`]: [
          { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { a: 'b' } } },
        ],
      },
    ],
    [
      { [`${a}.${required}`]: [{ labelSelector: { matchLabels: { a: 'b c' } } }] },
      `Invalid ${a}.${required}[0].labelSelector.matchLabels[a]`,
      `Required ${a}.${required}[0].topologyKey`,
    ],
    [
      { [`${a}.${required}`]: [{ topologyKey: 'k', matchLabelKeys: ['a'] }] },
      `Forbidden ${a}.${required}[0].matchLabelKeys`,
    ],
    [
      {
        [`${a}.${required}`]: [
          { topologyKey: 'k', labelSelector: {}, matchLabelKeys: ['a'], mismatchLabelKeys: ['a'] },
        ],
      },
      `Invalid ${a}.${required}[0].mismatchLabelKeys[0]`,
    ],
    [
      { [`${a}.${preferred}`]: [{ weight: 101, podAffinityTerm: { topologyKey: 'k', namespaces: ['N'] } }] },
      `Invalid ${a}.${preferred}[0].weight`,
      `Invalid ${a}.${preferred}[0].podAffinityTerm.namespaces[0]`,
    ],
  ]);
});

describe('topology spread', () => {
  const s = 'spec.topologySpreadConstraints';
  const good = { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' };
  testCases([
    [
      {
        [s]: [
          { ...good, minDomains: 2, nodeTaintsPolicy: 'Honor' },
          { ...good, whenUnsatisfiable: 'ScheduleAnyway' },
        ],
      },
    ],
    [
      { [s]: [{}] },
      `Invalid ${s}[0].maxSkew`,
      `Required ${s}[0].topologyKey`,
      `NotSupported ${s}[0].whenUnsatisfiable`,
    ],
    [{ [s]: [good, good] }, `Duplicate ${s}[1].{topologyKey, whenUnsatisfiable}`],
    [
      { [s]: [{ ...good, whenUnsatisfiable: 'ScheduleAnyway', minDomains: 1 }] },
      `Invalid ${s}[0].minDomains`,
    ],
    [{ [s]: [{ ...good, nodeAffinityPolicy: 'x' }] }, `NotSupported ${s}[0].nodeAffinityPolicy`],
    [{ [s]: [{ ...good, matchLabelKeys: ['a'] }] }, `Forbidden ${s}[0].matchLabelKeys`],
  ]);
});

describe('gates, selectors and priority', () => {
  testCases([
    [
      {
        'spec.nodeSelector': { 'a/b': 'c' },
        'spec.priorityClassName': 'high',
        'spec.preemptionPolicy': 'Never',
      },
    ],
    [
      { 'spec.nodeSelector': { 'a b': 'c d' } },
      'Invalid spec.nodeSelector',
      'Invalid spec.nodeSelector[a b]',
    ],
    [{ 'spec.readinessGates': [{ conditionType: 'a b' }] }, 'Invalid spec.readinessGates[0].conditionType'],
    [{ 'spec.schedulingGates': [{ name: 'a' }, { name: 'a' }] }, 'Duplicate spec.schedulingGates[1].name'],
    [{ 'spec.schedulingGates': [{ name: 'a' }], 'spec.nodeName': 'n' }, 'Forbidden spec.nodeName'],
    [{ 'spec.priorityClassName': 'High' }, 'Invalid spec.priorityClassName'],
    [{ 'spec.preemptionPolicy': 'Always' }, 'NotSupported spec.preemptionPolicy'],
  ]);
});
