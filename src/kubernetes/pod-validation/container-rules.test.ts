import { describe } from 'node:test';
import { testCases } from './pod-cases.ts';

const c = 'spec.containers[0]';
const i = 'spec.initContainers[0]';
const e = 'spec.ephemeralContainers[0]';

describe('containers', () => {
  testCases([
    [{}],
    [{ 'spec.containers': [] }, 'Required spec.containers'],
    [{ [`${c}.name`]: undefined }, `Required ${c}.name`],
    [{ [`${c}.name`]: 'Not_a_label' }, `Invalid ${c}.name`],
    [{ [`${c}.name`]: 'a'.repeat(64) }, `Invalid ${c}.name`],
    [{ 'spec.containers[1]': { name: 'app', image: 'x' } }, 'Duplicate spec.containers[1].name'],
    [{ [`${i}.name`]: 'app' }, `Duplicate ${i}.name`],
    [{ [`${c}.image`]: undefined }, `Required ${c}.image`],
    [{ [`${c}.image`]: ' x' }, `Invalid ${c}.image`],
    [{ [`${c}.imagePullPolicy`]: 'Sometimes' }, `NotSupported ${c}.imagePullPolicy`],
    [{ [`${c}.terminationMessagePolicy`]: 'Stdout' }, `NotSupported ${c}.terminationMessagePolicy`],
  ]);
});

describe('ports', () => {
  testCases([
    [{ [`${c}.ports`]: [{ containerPort: 80 }, { containerPort: 80, protocol: 'UDP', name: 'dns' }] }],
    [{ [`${c}.ports`]: [{}] }, `Required ${c}.ports[0].containerPort`],
    [{ [`${c}.ports`]: [{ containerPort: 65_536 }] }, `Invalid ${c}.ports[0].containerPort`],
    [{ [`${c}.ports`]: [{ containerPort: 1, hostPort: -1 }] }, `Invalid ${c}.ports[0].hostPort`],
    [{ [`${c}.ports`]: [{ containerPort: 1, protocol: 'tcp' }] }, `NotSupported ${c}.ports[0].protocol`],
    [{ [`${c}.ports`]: [{ containerPort: 1, name: '80' }] }, `Invalid ${c}.ports[0].name`],
    [
      {
        [`${c}.ports`]: [
          { containerPort: 1, name: 'a' },
          { containerPort: 2, name: 'a' },
        ],
      },
      `Duplicate ${c}.ports[1].name`,
    ],
    [
      {
        [`${c}.ports`]: [
          { containerPort: 1, hostPort: 9 },
          { containerPort: 2, hostPort: 9 },
        ],
      },
      `Duplicate ${c}.ports[1].hostPort`,
    ],
    [
      {
        [`${c}.ports`]: [
          { containerPort: 1, hostPort: 9 },
          { containerPort: 2, hostPort: 9, protocol: 'UDP' },
        ],
      },
    ],
    [
      {
        [`${c}.ports`]: [{ containerPort: 1, hostPort: 9 }],
        'spec.containers[1]': { name: 'b', image: 'x', ports: [{ containerPort: 1, hostPort: 9 }] },
      },
      'Duplicate spec.containers[1].ports[0].hostPort',
    ],
    // Init containers are done before the port is needed again.
    [
      {
        [`${c}.ports`]: [{ containerPort: 1, hostPort: 9 }],
        [`${i}.ports`]: [{ containerPort: 1, hostPort: 9 }],
      },
    ],
    [
      { 'spec.hostNetwork': true, [`${c}.ports`]: [{ containerPort: 1, hostPort: 2 }] },
      `Invalid ${c}.ports[0].containerPort`,
    ],
    [{ 'spec.hostNetwork': true, [`${c}.ports`]: [{ containerPort: 1 }] }],
  ]);
});

describe('environment', () => {
  const env = `${c}.env`;
  const from = `${env}[0].valueFrom`;
  const variable = (valueFrom: unknown) => ({ [env]: [{ name: 'A', valueFrom }] });
  testCases([
    [{ [env]: [{ name: 'A-b.c d', value: 'x' }, { name: 'EMPTY' }, { name: 'A-b.c d' }] }],
    [{ [env]: [{ value: 'x' }] }, `Required ${env}[0].name`],
    [{ [env]: [{ name: 'A=B' }] }, `Invalid ${env}[0].name`],
    [variable({}), `Invalid ${from}`],
    [
      { [env]: [{ name: 'A', value: 'x', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }] },
      `Invalid ${from}`,
    ],
    [
      variable({ fieldRef: { fieldPath: 'metadata.name' }, secretKeyRef: { name: 's', key: 'k' } }),
      `Invalid ${from}`,
    ],
    ...[
      'metadata.uid',
      'spec.nodeName',
      'status.hostIPs',
      "metadata.labels['a/b']",
      "metadata.annotations['X/y']",
    ].map((fieldPath) => [variable({ fieldRef: { fieldPath } })] as const),
    [variable({ fieldRef: { fieldPath: 'metadata.labels' } }), `NotSupported ${from}.fieldRef.fieldPath`],
    [variable({ fieldRef: { fieldPath: 'spec.hostname' } }), `NotSupported ${from}.fieldRef.fieldPath`],
    [
      variable({ fieldRef: { fieldPath: "metadata.labels['/']" } }),
      ...Array(3).fill(`Invalid ${from}.fieldRef.fieldPath`),
    ],
    [variable({ fieldRef: {} }), `Required ${from}.fieldRef.fieldPath`],
    [
      variable({ fieldRef: { fieldPath: 'metadata.name', apiVersion: 'v2' } }),
      `Invalid ${from}.fieldRef.apiVersion`,
    ],
    [variable({ resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } })],
    [variable({ resourceFieldRef: { resource: 'requests.memory', divisor: '1Mi' } })],
    [variable({ resourceFieldRef: { resource: 'limits.hugepages-2Mi' } })],
    [variable({ resourceFieldRef: {} }), `Required ${from}.resourceFieldRef.resource`],
    [
      variable({ resourceFieldRef: { resource: 'limits.pods' } }),
      `NotSupported ${from}.resourceFieldRef.resource`,
    ],
    [
      variable({ resourceFieldRef: { resource: 'limits.cpu', divisor: '1Mi' } }),
      `Invalid ${from}.resourceFieldRef.divisor`,
    ],
    [
      variable({ resourceFieldRef: { resource: 'limits.memory', divisor: '2Mi' } }),
      `Invalid ${from}.resourceFieldRef.divisor`,
    ],
    [variable({ configMapKeyRef: { name: 'm', key: 'k.x' } })],
    [variable({ configMapKeyRef: { key: 'k' } }), `Required ${from}.configMapKeyRef.name`],
    [variable({ secretKeyRef: { name: 's' } }), `Required ${from}.secretKeyRef.key`],
    [
      variable({ secretKeyRef: { name: 's', key: '../k' } }),
      ...Array(2).fill(`Invalid ${from}.secretKeyRef.key`),
    ],
    [variable({ fileKeyRef: { volumeName: 'scratch', path: 'a/env', key: 'K' } })],
    [
      variable({ fileKeyRef: { volumeName: 'disk', path: 'env', key: 'K' } }),
      `Invalid ${from}.fileKeyRef.volumeName`,
    ],
    [
      variable({ fileKeyRef: { volumeName: 'x', path: 'env', key: 'K' } }),
      `NotFound ${from}.fileKeyRef.volumeName`,
    ],
    [
      variable({ fileKeyRef: { volumeName: 'scratch', path: '../env', key: 'K' } }),
      `Invalid ${from}.fileKeyRef.path`,
    ],
    [{ [`${c}.envFrom`]: [{ configMapRef: { name: 'm' } }, { prefix: 'P_', secretRef: { name: 's' } }] }],
    [{ [`${c}.envFrom`]: [{}] }, `Invalid ${c}.envFrom[0]`],
    [{ [`${c}.envFrom`]: [{ prefix: 'a=', secretRef: { name: 's' } }] }, `Invalid ${c}.envFrom[0].prefix`],
    [{ [`${c}.envFrom`]: [{ secretRef: {} }] }, `Required ${c}.envFrom[0].secretRef.name`],
    [
      { [`${c}.envFrom`]: [{ configMapRef: { name: 'm' }, secretRef: { name: 's' } }] },
      `Invalid ${c}.envFrom[0]`,
    ],
  ]);
});

describe('probes', () => {
  const probe = (fields: object, name = 'livenessProbe') => ({ [`${c}.${name}`]: fields });
  const exec = { command: ['true'] };
  testCases([
    [probe({ exec })],
    [probe({ httpGet: { port: 'web', httpHeaders: [{ name: 'X-A', value: '' }] } })],
    [probe({ tcpSocket: { port: 80 } }, 'readinessProbe')],
    [probe({ grpc: { port: 80 } }, 'startupProbe')],
    [probe({}), `Required ${c}.livenessProbe`],
    [probe({ exec, grpc: { port: 1 } }), `Forbidden ${c}.livenessProbe.grpc`],
    [probe({ exec: {} }), `Required ${c}.livenessProbe.exec.command`],
    [probe({ httpGet: { port: 0 } }), `Invalid ${c}.livenessProbe.httpGet.port`],
    [probe({ httpGet: {} }), `Invalid ${c}.livenessProbe.httpGet.port`],
    [probe({ httpGet: { port: 'Web!' } }), `Invalid ${c}.livenessProbe.httpGet.port`],
    [probe({ httpGet: { port: 1, scheme: 'http' } }), `NotSupported ${c}.livenessProbe.httpGet.scheme`],
    [
      probe({ httpGet: { port: 1, httpHeaders: [{ name: 'a b', value: '' }] } }),
      `Invalid ${c}.livenessProbe.httpGet.httpHeaders[0].name`,
    ],
    [probe({ tcpSocket: { port: 70_000 } }), `Invalid ${c}.livenessProbe.tcpSocket.port`],
    [probe({ grpc: {} }), `Invalid ${c}.livenessProbe.grpc.port`],
    ...['initialDelaySeconds', 'timeoutSeconds', 'periodSeconds', 'successThreshold', 'failureThreshold'].map(
      (field) => [probe({ exec, [field]: -1 }), `Invalid ${c}.livenessProbe.${field}`] as const,
    ),
    [probe({ exec, successThreshold: 2 }), `Invalid ${c}.livenessProbe.successThreshold`],
    [probe({ exec, successThreshold: 2 }, 'startupProbe'), `Invalid ${c}.startupProbe.successThreshold`],
    [probe({ exec, successThreshold: 2 }, 'readinessProbe')],
    [
      probe({ exec, terminationGracePeriodSeconds: 0 }),
      `Invalid ${c}.livenessProbe.terminationGracePeriodSeconds`,
    ],
    [
      probe({ exec, terminationGracePeriodSeconds: 5 }, 'readinessProbe'),
      `Invalid ${c}.readinessProbe.terminationGracePeriodSeconds`,
    ],
  ]);
});

describe('lifecycle', () => {
  const preStop = (handler: object) => ({ [`${c}.lifecycle.preStop`]: handler });
  testCases([
    [preStop({ sleep: { seconds: 30 } })],
    [preStop({ sleep: { seconds: 0 } })],
    [preStop({ httpGet: { port: 1 } })],
    [preStop({ sleep: { seconds: 31 } }), `Invalid ${c}.lifecycle.preStop.sleep.seconds`],
    [preStop({ sleep: { seconds: -1 } }), `Invalid ${c}.lifecycle.preStop.sleep.seconds`],
    [preStop({}), `Required ${c}.lifecycle.preStop`],
    [preStop({ exec: { command: ['a'] }, sleep: { seconds: 1 } }), `Forbidden ${c}.lifecycle.preStop.sleep`],
    [
      { [`${c}.lifecycle.postStart`]: { tcpSocket: { port: 'x--y' } } },
      `Invalid ${c}.lifecycle.postStart.tcpSocket.port`,
    ],
    [{ [`${c}.lifecycle.stopSignal`]: 'SIGUSR1' }, `Forbidden ${c}.lifecycle.stopSignal`],
    [{ 'spec.os.name': 'linux', [`${c}.lifecycle.stopSignal`]: 'SIGRTMIN+15' }],
    [
      { 'spec.os.name': 'linux', [`${c}.lifecycle.stopSignal`]: 'USR1' },
      `NotSupported ${c}.lifecycle.stopSignal`,
    ],
    [
      { 'spec.os.name': 'windows', [`${c}.lifecycle.stopSignal`]: 'SIGHUP' },
      `NotSupported ${c}.lifecycle.stopSignal`,
    ],
  ]);
});

describe('restart policies of containers', () => {
  const rules = `${c}.restartPolicyRules`;
  const rule = { action: 'Restart', exitCodes: { operator: 'In', values: [1] } };
  testCases([
    [{ [`${c}.restartPolicy`]: 'OnFailure' }],
    [{ [`${c}.restartPolicy`]: 'Sometimes' }, `NotSupported ${c}.restartPolicy`],
    [{ [`${c}.restartPolicy`]: 'Never', [rules]: [rule] }],
    [{ [rules]: [rule] }, `Required ${c}.restartPolicy`],
    [
      { [`${c}.restartPolicy`]: 'Never', [rules]: Array.from({ length: 21 }, () => rule) },
      `TooMany ${rules}`,
    ],
    [{ [`${c}.restartPolicy`]: 'Never', [rules]: [{ action: 'Restart' }] }, `Required ${rules}[0].exitCodes`],
    [
      { [`${c}.restartPolicy`]: 'Never', [rules]: [{ action: 'Stop', exitCodes: { operator: 'Is' } }] },
      `NotSupported ${rules}[0].action`,
      `NotSupported ${rules}[0].exitCodes.operator`,
    ],
    [
      {
        [`${c}.restartPolicy`]: 'Never',
        [rules]: [
          { action: 'RestartAllContainers', exitCodes: { operator: 'In', values: Array(256).fill(1) } },
        ],
      },
      `TooMany ${rules}[0].exitCodes.values`,
    ],
  ]);
});

describe('init containers', () => {
  const probe = { exec: { command: ['true'] } };
  testCases([
    [{ [`${i}.livenessProbe`]: probe }, `Forbidden ${i}.livenessProbe`],
    [{ [`${i}.readinessProbe`]: probe }, `Forbidden ${i}.readinessProbe`],
    [{ [`${i}.startupProbe`]: probe }, `Forbidden ${i}.startupProbe`],
    [{ [`${i}.lifecycle`]: { preStop: probe } }, `Forbidden ${i}.lifecycle`],
    [
      {
        [`${i}.restartPolicy`]: 'Always',
        [`${i}.startupProbe`]: probe,
        [`${i}.lifecycle`]: { preStop: probe },
      },
    ],
    [{ [`${i}.restartPolicy`]: 'Always', [`${i}.startupProbe`]: {} }, `Required ${i}.startupProbe`],
    [
      { [`${i}.restartPolicy`]: 'Always', [`${i}.lifecycle`]: { preStop: {} } },
      `Required ${i}.lifecycle.preStop`,
    ],
  ]);
});

describe('ephemeral containers', () => {
  testCases([[{ [e]: { name: 'debug', image: 'x' } }, 'Forbidden spec.ephemeralContainers']]);
  const debug = (fields: object) => ({ [e]: { name: 'debug', image: 'x', ...fields } });
  testCases(
    [
      [debug({ targetContainerName: 'app', volumeMounts: [{ name: 'scratch', mountPath: '/a' }] })],
      [debug({ name: 'app' }), `Duplicate ${e}.name`],
      [debug({ name: undefined }), `Required ${e}.name`],
      [debug({ targetContainerName: 'other' }), `NotFound ${e}.targetContainerName`],
      [debug({ ports: [{ containerPort: 1 }] }), `Forbidden ${e}.ports`],
      [debug({ livenessProbe: { exec: { command: ['true'] } } }), `Forbidden ${e}.livenessProbe`],
      [debug({ resources: { limits: { cpu: '1' } } }), `Forbidden ${e}.resources`],
      [debug({ resources: {} })],
      [debug({ restartPolicy: 'Always' }), `Forbidden ${e}.restartPolicy`],
      [
        debug({ volumeMounts: [{ name: 'scratch', mountPath: '/a', subPath: 'b' }] }),
        `Forbidden ${e}.volumeMounts[0].subPath`,
      ],
    ],
    { allowEphemeralContainers: true },
  );
});
