/**
 * Turns a table of the kubelet's endpoints (tab separated: endpoints.tsv in the folder given) into the fixture that
 * tests hold the node's API against: method, path, ports, and the right that each takes.
 * Usage: node scripts/extract-endpoint-facts.ts FOLDER
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const folder = process.argv[2];
if (folder === undefined) throw new Error('usage: extract-endpoint-facts.ts FOLDER');
const target = path.join(path.dirname(process.argv[1]!), '../src/server/fixtures/endpoints.facts.json');

const [head = '', ...lines] = readFileSync(path.join(folder, 'endpoints.tsv'), 'utf8').trimEnd().split('\n');
const columns = head.split('\t');
const facts = lines
  .map((line) => Object.fromEntries(line.split('\t').map((cell, index) => [columns[index]!, cell])))
  // The others describe what all have in common.
  .filter(({ method }) => method !== 'ANY')
  .filter((row, index, all) => {
    const same = (other: typeof row) => other['method'] === row['method'] && other['path'] === row['path'];
    return all.findIndex((other) => same(other) && other['ports'] === row['ports']) === index;
  })
  .map((row) => ({
    method: row['method'],
    path: row['path'],
    ports: row['ports']!.split(',').map(Number),
    verb: row['authz_verb'],
    subresources: [...row['authz_resource']!.matchAll(/nodes\/(\w+)/g)].map(([, name]) => name),
  }));
writeFileSync(target, `[\n${facts.map((fact) => `  ${JSON.stringify(fact)}`).join(',\n')}\n]\n`);
