import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../kubernetes/yaml.ts';
import { EFFECTIVE_FIELDS, EFFECTIVE_FLAGS, ineffective, PENDING_FIELDS, PENDING_FLAGS } from './effects.ts';
import { resolveFeatureGates } from './feature-gates.ts';
import { FLAG_NAMES, FLAGS } from './flags/flags.ts';
import { listFields } from './kubelet-configuration.ts';

test('every flag and every field is in exactly one list', () => {
  const flags = FLAG_NAMES.filter((name) => FLAGS[name].field === undefined);
  assert.deepEqual([...EFFECTIVE_FLAGS, ...PENDING_FLAGS].sort(), flags.sort());
  const leaves = [...listFields()]
    .filter(([path, { members }]) => !members && !path.includes('[]'))
    .map(([path]) => path);
  assert.deepEqual([...EFFECTIVE_FIELDS, ...PENDING_FIELDS].sort(), leaves.sort());
});

test('names what was set away from its default and does nothing yet', () => {
  const files: JsonObject[] = [
    {
      protectKernelDefaults: true,
      maxPods: 5,
      evictionPressureTransitionPeriod: '300s',
      nodeLeaseDurationSeconds: 40,
    },
    { tracing: { samplingRatePerMillion: 5 }, protectKernelDefaults: null },
  ];
  const given = { 'lock-file': '/k', 'max-pods': 9, 'oom-score-adj': -999, 'volume-plugin-dir': '/v' };
  const { gates } = resolveFeatureGates({ NativeHistograms: true, MemoryQoS: true, AtomicFIFO: true });
  assert.deepEqual(ineffective({ given, files, gates }), [
    '--lock-file',
    '--volume-plugin-dir',
    'protectKernelDefaults',
    'tracing.samplingRatePerMillion',
    'featureGates.NativeHistograms',
  ]);
});

test('names the encoding of requests only when something else than JSON is asked for', () => {
  const { gates } = resolveFeatureGates({});
  const named = (contentType?: string) => [
    ...ineffective({ given: {}, files: contentType === undefined ? [{}] : [{ contentType }], gates }),
    ...ineffective({
      given: contentType === undefined ? {} : { 'kube-api-content-type': contentType },
      files: [],
      gates,
    }),
  ];
  for (const none of [undefined, 'application/json', 'application/vnd.kubernetes.protobuf']) {
    assert.deepEqual(named(none), [], none);
  }
  assert.deepEqual(named('application/cbor'), ['contentType', '--kube-api-content-type']);
});

test('names gates that were switched with their whole stage', () => {
  const { gates } = resolveFeatureGates({ AllAlpha: true, NativeHistograms: false });
  const named = ineffective({ given: {}, files: [], gates });
  assert.ok(named.includes('featureGates.QOSReserved'));
  assert.ok(!named.includes('featureGates.NativeHistograms'));
  assert.ok(!named.includes('featureGates.ContainerStopSignals'));
});
