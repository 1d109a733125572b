import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { FEATURE_GATES, GATE_NAMES } from './feature-gates.ts';
import { FLAG_NAMES, FLAGS } from './flags/flags.ts';
import { listFields } from './kubelet-configuration.ts';

/** Facts of Kubernetes 1.36, extracted apart from this code. */
function facts(name: string): Record<string, unknown>[] {
  const file = path.join(process.cwd(), 'src/config/fixtures', `${name}.facts.json`);
  return JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>[];
}

/** Drops undefined members, and empty values where a table has no other way to say "none". */
const plain = (value: object) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>;
const isNone = (value: unknown) =>
  value === '' ||
  value === undefined ||
  (typeof value === 'object' && value !== null && Object.keys(value).length === 0);
const withoutNone = (fact: Record<string, unknown>) => {
  const { default: byDefault, ...rest } = plain(fact);
  return isNone(byDefault) ? rest : { ...rest, default: byDefault };
};
const byName = (list: Record<string, unknown>[], key: string) =>
  new Map(list.map((item) => [item[key], withoutNone(item)]));

/** Flags that Kubernetes does not have. */
const own: ReadonlySet<string> = new Set(['restore-pods-offline']);

test('every flag of the kubelet, with its type, default and field', () => {
  const kubelets = FLAG_NAMES.filter((name) => !own.has(name));
  const ours = kubelets.map((name) => {
    const { shorthand, type, default: byDefault, deprecated, field } = FLAGS[name];
    return { name, shorthand, type, default: byDefault, deprecated, field };
  });
  assert.equal(ours.length, 152);
  assert.deepEqual(byName(ours, 'name'), byName(facts('flags'), 'name'));
});

test('every field of KubeletConfiguration, with its type, default and gate', () => {
  const ours = [...listFields()].map(([field, { type, pointer, default: byDefault, gate }]) => ({
    field,
    type,
    pointer,
    default: byDefault,
    gate,
  }));
  // Items of lists that the facts do not spell out.
  const spelledOut = ours.filter(({ field }) => !/^(logging\.vmodule|registerWithTaints)\[\]\./.test(field));
  assert.deepEqual(byName(spelledOut, 'field'), byName(facts('fields'), 'field'));
});

test('every flag that names a field names one that is there', () => {
  const fields = listFields();
  for (const name of FLAG_NAMES) {
    const { field } = FLAGS[name];
    if (field !== undefined) assert.ok(fields.has(field), `--${name}: ${field}`);
  }
});

test('every feature gate, with its default, stage and lock', () => {
  const ours = GATE_NAMES.map((name) => {
    const { default: byDefault, stage, locked = false } = FEATURE_GATES[name];
    return { name, default: byDefault, stage, locked };
  });
  assert.deepEqual(ours, facts('feature-gates'));
});
