import assert from 'node:assert/strict';
import { it } from 'node:test';
import { streams } from './log-entry.ts';
import { readLogQuery } from './log-query.ts';

const now = Date.UTC(2026, 2, 1);
const read = (query: string, streamsSplit = true) =>
  readLogQuery(new URLSearchParams(query), { now, streamsSplit });
const plain = { follow: false, previous: 0, timestamps: false };

it('reads what is asked for', () => {
  const cases: Record<string, object> = {
    '': plain,
    'follow=true&timestamps=1&previous=false': { ...plain, follow: true, timestamps: true },
    'follow=0&timestamps=FALSE': plain,
    'follow=&previous': { ...plain, follow: true, previous: 1 },
    'previous=true': { ...plain, previous: 1 },
    'previous=1': { ...plain, previous: 1 },
    'previous=3': { ...plain, previous: 3 },
    'tailLines=0': { ...plain, tailLines: 0 },
    'tailLines=7&tail=5': { ...plain, tailLines: 5 },
    'tailLines=7&tail=all': plain,
    'limitBytes=1': { ...plain, limitBytes: 1 },
    'sinceSeconds=60': { ...plain, sinceMs: now - 60_000 },
    'sinceTime=2026-03-01T02:00:00.5%2B02:00': { ...plain, sinceMs: now + 500 },
    'sinceTime=': plain,
    'stream=All&tailLines=1': { ...plain, tailLines: 1 },
    'stream=Stdout': { ...plain, stream: streams.stdout },
    'stream=Stderr': { ...plain, stream: streams.stderr },
  };
  for (const [query, expected] of Object.entries(cases)) assert.deepEqual(read(query), expected, query);
});

it('refuses what cannot be read with 400, and what makes no sense with 422', () => {
  const undecodable = '{"message": "Unable to decode query."}';
  const queries = [
    'tailLines=x',
    'tail=x',
    'tailLines=',
    'limitBytes=1.5',
    'sinceSeconds=9223372036854775808',
  ];
  for (const query of [...queries, 'sinceTime=yesterday', 'sinceTime=2026-13-01T00:00:00Z']) {
    assert.deepEqual(read(query), { status: 400, text: undecodable }, query);
  }
  const invalid = [
    'tailLines=-1',
    'limitBytes=0',
    'limitBytes=-5',
    'sinceSeconds=0',
    'stream=stdout',
    'stream=',
  ];
  const both = ['sinceSeconds=1&sinceTime=2026-03-01T00:00:00Z', 'stream=Stdout&tailLines=1'];
  for (const query of [...invalid, ...both]) {
    assert.deepEqual(read(query), { status: 422, text: '{"message": "Invalid request."}' }, query);
  }
});

it('takes streams only where the gate is on', () => {
  const answer = read('stream=All', false);
  assert.ok('status' in answer && answer.status === 400);
});
