import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import type { PodFacts } from './downward-fields.ts';
import { EnvFileError, lookUpEnvFile } from './env-file.ts';
import {
  buildEnvironment,
  EnvironmentError,
  type EnvironmentSources,
  noEnvironmentSources,
} from './environment.ts';
import { amountsOf } from './pod-resources.ts';
import type { Container, EnvVar, Pod } from './types.ts';

const facts: PodFacts = {
  nodeName: 'node-1',
  hostIps: ['10.0.0.1', 'fd00::1'],
  podIps: ['10.1.0.7', 'fd01::7'],
  nodeAllocatable: amountsOf({ cpu: '2', memory: '4Gi', 'ephemeral-storage': '10Gi' }),
};

const podOf = (container: Container, spec: Partial<Pod['spec']> = {}): Pod => ({
  metadata: {
    name: 'web',
    namespace: 'shop',
    uid: 'u-1',
    labels: { app: 'web', 'example.com/tier': 'front' },
    annotations: { note: "it's" },
  },
  spec: {
    containers: [container],
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 30,
    dnsPolicy: 'ClusterFirst',
    ...spec,
  },
});

const sources: EnvironmentSources = {
  configMap: (namespace, name) =>
    namespace === 'shop' && name === 'conf' ? { COLOR: 'red', SIZE: 'L' } : undefined,
  secret: (namespace, name) => (namespace === 'shop' && name === 'keys' ? { TOKEN: 't0' } : undefined),
  envFile: (volume, path) => (volume === 'data' && path === 'a.env' ? "A='1'\nEMPTY=\nB='2" : undefined),
};

interface Given {
  env?: EnvVar[];
  envFrom?: Container['envFrom'];
  services?: Record<string, string>;
  resources?: Container['resources'];
  spec?: Partial<Pod['spec']>;
  facts?: PodFacts;
}

function build(given: Given): Record<string, string> {
  const { env, envFrom, resources } = given;
  const container: Container = {
    name: 'main',
    ...(env ? { env } : {}),
    ...(envFrom ? { envFrom } : {}),
    ...(resources ? { resources } : {}),
  };
  const variables = buildEnvironment({
    pod: podOf(container, given.spec),
    container,
    facts: given.facts ?? facts,
    sources,
    serviceVariables: new Map(Object.entries(given.services ?? {})),
  });
  return Object.fromEntries(variables);
}

const field = (fieldPath: string): EnvVar => ({ name: 'V', valueFrom: { fieldRef: { fieldPath } } });
const resource = (resource: string, divisor?: string, containerName?: string): EnvVar => ({
  name: 'V',
  valueFrom: {
    resourceFieldRef: {
      resource,
      ...(divisor ? { divisor } : {}),
      ...(containerName ? { containerName } : {}),
    },
  },
});

suite('environment', () => {
  test('env wins over envFrom, envFrom over services, later over earlier', () => {
    assert.deepEqual(
      build({
        envFrom: [{ configMapRef: { name: 'conf' } }, { prefix: 'S_', secretRef: { name: 'keys' } }],
        env: [
          { name: 'SIZE', value: 'M' },
          { name: 'A', value: '1' },
          { name: 'A', value: '2' },
        ],
        services: { COLOR: 'blue', WEB_PORT: 'tcp://10.0.0.9:80' },
      }),
      { COLOR: 'red', SIZE: 'M', S_TOKEN: 't0', A: '2', WEB_PORT: 'tcp://10.0.0.9:80' },
    );
  });

  test('values are expanded with what was set before, then with services; references are not', () => {
    assert.deepEqual(
      build({
        envFrom: [{ configMapRef: { name: 'conf' } }],
        env: [
          { name: 'A', value: '$(COLOR)-$(LATER)-$(SVC)-$$(COLOR)' },
          { name: 'LATER', value: 'x' },
          { name: 'A', value: '$(A)!' },
        ],
        services: { SVC: '10.0.0.9' },
      }),
      { COLOR: 'red', SIZE: 'L', A: 'red-$(LATER)-10.0.0.9-$(COLOR)!', LATER: 'x', SVC: '10.0.0.9' },
    );
  });

  test('an empty value sets an empty variable', () => {
    assert.deepEqual(build({ env: [{ name: 'A' }, { name: 'B', value: '' }] }), { A: '', B: '' });
  });

  test('an optional reference that leads nowhere leaves an earlier value', () => {
    const env: EnvVar[] = [
      { name: 'A', value: 'kept' },
      { name: 'A', valueFrom: { configMapKeyRef: { name: 'conf', key: 'NONE', optional: true } } },
      { name: 'A', valueFrom: { secretKeyRef: { name: 'none', key: 'TOKEN', optional: true } } },
      {
        name: 'A',
        valueFrom: { fileKeyRef: { volumeName: 'data', path: 'none', key: 'A', optional: true } },
      },
      { name: 'B', valueFrom: { configMapKeyRef: { name: 'conf', key: 'COLOR' } } },
      { name: 'C', valueFrom: { secretKeyRef: { name: 'keys', key: 'TOKEN' } } },
      { name: 'D', valueFrom: { fileKeyRef: { volumeName: 'data', path: 'a.env', key: 'A' } } },
    ];
    const envFrom = [{ configMapRef: { name: 'none', optional: true } }];
    assert.deepEqual(build({ env, envFrom }), { A: 'kept', B: 'red', C: 't0', D: '1' });
  });

  const failures: [Given, string][] = [
    [{ envFrom: [{ configMapRef: { name: 'none' } }] }, 'configmap "none" not found'],
    [{ envFrom: [{ secretRef: { name: 'none' } }] }, 'secret "none" not found'],
    [
      { env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 'none', key: 'k' } } }] },
      'secret "none" not found',
    ],
    [
      { env: [{ name: 'A', valueFrom: { configMapKeyRef: { name: 'conf', key: 'k' } } }] },
      "couldn't find key k in ConfigMap shop/conf",
    ],
    [
      { env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 'keys', key: 'toString' } } }] },
      "couldn't find key toString in Secret shop/keys",
    ],
    [{ env: [field('status.phase')] }, 'unsupported fieldPath: status.phase'],
    [{ env: [resource('limits.pods')] }, 'unsupported container resource : limits.pods'],
    [{ env: [resource('limits.cpu', '1', 'nobody')] }, 'container nobody not found'],
    [
      {
        env: [{ name: 'A', valueFrom: { fileKeyRef: { volumeName: 'data', path: 'a.env', key: 'EMPTY' } } }],
      },
      'couldn\'t find a value of key "EMPTY" in file "a.env" of volume "data"',
    ],
    [
      { env: [{ name: 'A', valueFrom: { fileKeyRef: { volumeName: 'data', path: 'a.env', key: 'B' } } }] },
      "couldn't parse env file: line 3: a quote is not closed",
    ],
  ];
  for (const [given, message] of failures) {
    test(message, () => assert.throws(() => build(given), { name: 'EnvironmentError', message }));
  }

  test('a static pod has no config maps', () => {
    const container: Container = { name: 'main', envFrom: [{ configMapRef: { name: 'conf' } }] };
    const input = { pod: podOf(container), container, facts, sources: noEnvironmentSources };
    assert.throws(() => buildEnvironment(input), EnvironmentError);
  });

  const fields: [string, string][] = [
    ['metadata.name', 'web'],
    ['metadata.namespace', 'shop'],
    ['metadata.uid', 'u-1'],
    ['spec.nodeName', 'node-1'],
    ['spec.serviceAccountName', ''],
    ['status.hostIP', '10.0.0.1'],
    ['status.hostIPs', '10.0.0.1,fd00::1'],
    ['status.podIP', '10.1.0.7'],
    ['status.podIPs', '10.1.0.7,fd01::7'],
    ["metadata.labels['app']", 'web'],
    ["metadata.labels['example.com/tier']", 'front'],
    ["metadata.annotations['note']", "it's"],
    ["metadata.labels['toString']", ''],
  ];
  for (const [path, value] of fields) {
    test(`field ${path}`, () => assert.deepEqual(build({ env: [field(path)] }), { V: value }));
  }

  test("on the host's network the pod has the node's addresses", () => {
    const given = {
      env: [field('status.podIPs')],
      spec: { hostNetwork: true },
      facts: { ...facts, podIps: [] },
    };
    assert.deepEqual(build(given), { V: '10.0.0.1,fd00::1' });
  });

  const resources = {
    requests: { cpu: '250m', memory: '64Mi' },
    limits: { memory: '100Mi', 'hugepages-2Mi': '4Mi' },
  };
  const amounts: [string, string | undefined, string][] = [
    ['requests.cpu', undefined, '1'],
    ['requests.cpu', '1m', '250'],
    ['requests.cpu', '100m', '3'],
    ['requests.memory', '1Mi', '64'],
    ['requests.memory', undefined, '67108864'],
    ['limits.memory', '1Gi', '1'],
    ['limits.memory', '0', '104857600'],
    ['limits.cpu', undefined, '2'],
    ['requests.ephemeral-storage', undefined, '0'],
    ['limits.ephemeral-storage', '1Gi', '10'],
    ['limits.hugepages-2Mi', '1Mi', '4'],
    ['limits.hugepages-1Gi', undefined, '0'],
  ];
  for (const [name, divisor, value] of amounts) {
    test(`resource ${name} in ${divisor ?? 'units'}`, () => {
      assert.deepEqual(build({ env: [resource(name, divisor)], resources }), { V: value });
    });
  }

  test('a missing limit is the pod-level one, and another container can be asked about', () => {
    assert.deepEqual(
      build({ env: [resource('limits.cpu')], spec: { resources: { limits: { cpu: '500m' } } } }),
      { V: '1' },
    );
    const initContainers = [{ name: 'setup', resources: { limits: { memory: '1Gi' } } }];
    assert.deepEqual(build({ env: [resource('limits.memory', '1Mi', 'setup')], spec: { initContainers } }), {
      V: '1024',
    });
  });

  test('no entry it is given plainly gets lost', () => {
    const name = fc.stringMatching(/^[A-Z_]{1,5}$/);
    fc.assert(
      fc.property(fc.array(fc.record({ name, value: fc.string() })), (env) => {
        const result = build({ env });
        assert.deepEqual(new Set(Object.keys(result)), new Set(env.map((entry) => entry.name)));
      }),
    );
  });
});

suite('env file', () => {
  const text = "# comment\n\n  FIRST='1'\nFIRST='2'\nMULTI='a\n # b\nc' # end\nBLANK= '\nLAST='=='";
  const table: [string, string | undefined][] = [
    ['FIRST', '1'],
    ['MULTI', 'a\n # b\nc'],
    ['BLANK', ''],
    ['LAST', '=='],
    ['NONE', undefined],
  ];
  for (const [key, value] of table)
    test(`${key} is ${JSON.stringify(value)}`, () => assert.equal(lookUpEnvFile(text, key), value));

  for (const bad of ['A', "A ='1'", "='1'", 'A=1', 'A="1"', "A='1", "A='1'2"]) {
    test(`${bad} is refused, unless the key comes before it`, () => {
      assert.throws(() => lookUpEnvFile(bad, 'A'), EnvFileError);
      assert.equal(lookUpEnvFile(`Z='1'\n${bad}`, 'Z'), '1');
    });
  }

  test('every value without a quote can be written and read back', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.string().map((text) => text.replaceAll("'", '')),
          { maxLength: 5 },
        ),
        (values) => {
          const text = values.map((value, index) => `K${index}='${value}'`).join('\n');
          for (const [index, value] of values.entries())
            assert.equal(lookUpEnvFile(text, `K${index}`), value);
        },
      ),
    );
  });
});
