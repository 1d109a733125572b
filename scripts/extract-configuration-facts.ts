/**
 * Turns tables of the kubelet's flags, configuration fields and feature gates (tab separated: flags.tsv,
 * config.tsv, feature-gates.tsv in the folder given) into the fixtures that the tests hold the code
 * against: names, types, defaults. Usage: node scripts/extract-configuration-facts.ts FOLDER
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

type Row = Record<string, string>;
const folder = process.argv[2];
if (folder === undefined) throw new Error('usage: extract-configuration-facts.ts FOLDER');
const target = path.join(path.dirname(process.argv[1]!), '../src/config/fixtures');

function readTable(name: string): Row[] {
  const [head = '', ...lines] = readFileSync(path.join(folder!, name), 'utf8').trimEnd().split('\n');
  const columns = head.split('\t');
  return lines.map((line) =>
    Object.fromEntries(line.split('\t').map((cell, index) => [columns[index]!, cell])),
  );
}

function write(name: string, facts: readonly object[]): void {
  writeFileSync(
    path.join(target, name),
    `[\n${facts.map((fact) => `  ${JSON.stringify(fact)}`).join(',\n')}\n]\n`,
  );
}

/** The default without its remarks in brackets; undefined when it depends on something else. */
function plainDefault(text: string): string | undefined {
  const plain = text.replace(/\s*\(.*/, '');
  return plain === '' || plain === 'object' || plain === '{}' || plain.startsWith('null') ? undefined : plain;
}

function typed(text: string | undefined, type: string): unknown {
  if (text === undefined) return undefined;
  if (/^(bool|u?int(32|64)?|float64|Level)$/.test(type) || /^[["]/.test(text)) return JSON.parse(text);
  return text;
}

const evictionHard = (text: string) =>
  Object.fromEntries(
    text
      .replace(/\s*\(.*/, '')
      .split('; ')
      .map((pair) => pair.split(' ')),
  );

mkdirSync(target, { recursive: true });
write(
  'flags.facts.json',
  readTable('flags.tsv').map((row) => ({
    name: row['name'],
    shorthand: row['shorthand'] || undefined,
    type: row['type']!.replace(/^version .*/, 'version'),
    default: typed(plainDefault(row['default']!) ?? '""', row['type']!),
    deprecated: row['deprecated'] === 'yes',
    // A remark in brackets is advice, not the field that replaces the flag.
    field: row['config_field']!.includes('(') ? undefined : row['config_field'] || undefined,
  })),
);
write(
  'fields.facts.json',
  readTable('config.tsv')
    .filter((row) => row['kind'] === 'KubeletConfiguration')
    .map((row) => ({
      field: row['field']!.replace(/\[\]$/, ''),
      type: row['type'],
      pointer: row['go_kind'] === 'pointer',
      default:
        row['field'] === 'evictionHard'
          ? evictionHard(row['default']!)
          : typed(fieldDefault(row), row['type']!),
      gate: /^\w+$/.test(row['feature_gate']!) ? row['feature_gate'] : undefined,
    })),
);
write(
  'feature-gates.facts.json',
  readTable('feature-gates.tsv').map((row) => ({
    name: row['name'],
    default: row['default'] === 'true',
    stage: row['stage'],
    locked: row['locked'] === 'true',
  })),
);

/** Defaults that hold only while a gate is on are filled in apart from the table. */
function fieldDefault(row: Row): string | undefined {
  return row['default']!.includes('gate on') ? undefined : plainDefault(row['default']!);
}
