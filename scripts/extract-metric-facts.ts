/**
 * Turns the table of a kubelet's metrics (tab separated, metrics.tsv in the folder given) into the fixture
 * that tests hold the agent's metrics against: names, types, labels, buckets.
 * Usage: node scripts/extract-metric-facts.ts FOLDER
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = process.argv[2];
if (folder === undefined) throw new Error('usage: extract-metric-facts.ts FOLDER');
const target = join(import.meta.dirname, '../test/metrics/kubernetes-metrics.json');

const [head = '', ...lines] = readFileSync(join(folder, 'metrics.tsv'), 'utf8').trimEnd().split('\n');
const columns = head.split('\t');
const facts = lines.map((line) => {
  const cells = line.split('\t');
  const cell = (name: string) => cells[columns.indexOf(name)] ?? '';
  const list = (name: string) => cell(name).split(',').filter(Boolean);
  return JSON.stringify({
    endpoint: cell('endpoint'),
    name: cell('name'),
    type: cell('type').toLowerCase(),
    labels: list('labels').sort(),
    buckets: list('buckets').map((bucket) => Number(bucket.replaceAll("'", ''))),
  });
});
writeFileSync(target, `[\n${facts.map((fact) => `  ${fact}`).join(',\n')}\n]\n`);
