import assert from 'node:assert/strict';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { testPod } from './fixtures/pod-model.ts';
import { type PodRecord, PodRecords } from './pod-records.ts';

let root: string;
let errors: unknown[];
let records: PodRecords;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'kubelet-ts-records-'));
  errors = [];
  const logger = { ...silentLogger, error: (...line: unknown[]) => void errors.push(line) };
  records = new PodRecords({ rootDirectory: root, clock: new VirtualClock(), logger });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const directory = () => path.join(root, 'kubelet-ts', 'pods');
const file = (uid: string) => path.join(directory(), `${uid}.json`);
const record = (uid: string, extra: Partial<PodRecord> = {}): PodRecord => ({
  pod: { ...testPod(), metadata: { ...testPod().metadata, uid } },
  startTime: 5,
  ...extra,
});

describe('records of pods', () => {
  it('are read as they were written, the outcome included', async () => {
    const done = record('b', {
      terminal: { phase: 'Failed', reason: 'DeadlineExceeded', message: 'late' },
      status: { phase: 'Failed' },
    });
    await records.write(record('a'));
    await records.write(record('b'));
    await records.write(done);
    assert.deepEqual(
      (await records.readAll()).sort((a, b) => (a.pod.metadata.uid < b.pod.metadata.uid ? -1 : 1)),
      [record('a'), done],
    );
  });

  it('are none where none were ever written, and removing one that is not there is fine', async () => {
    assert.deepEqual(await records.readAll(), []);
    await records.remove('nobody');
    assert.deepEqual(errors, []);
  });

  it('are gone when they are removed', async () => {
    await records.write(record('a'));
    await records.remove('a');
    assert.deepEqual(await records.readAll(), []);
    assert.deepEqual(readdirSync(directory()), []);
  });

  const damages: readonly [string, (name: string) => void][] = [
    ['cut off', (name) => truncateSync(name, 100)],
    ['empty', (name) => truncateSync(name, 0)],
    [
      'changed',
      (name) => writeFileSync(name, readFileSync(name, 'utf8').replace('"startTime":5', '"startTime":6')),
    ],
    ['no JSON', (name) => writeFileSync(name, 'what?')],
    ['of another shape', (name) => writeFileSync(name, '{"checksum":"x","data":{}}')],
    ['null', (name) => writeFileSync(name, 'null')],
    [
      'a directory',
      (name) => {
        rmSync(name);
        mkdirSync(name);
      },
    ],
  ];
  for (const [what, damage] of damages) {
    it(`that are damaged are set aside and told of, and harm no others: ${what}`, async () => {
      await records.write(record('good'));
      await records.write(record('bad'));
      damage(file('bad'));
      assert.deepEqual(await records.readAll(), [record('good')]);
      assert.equal(errors.length, 1);
      assert.match(JSON.stringify(errors[0]), /"podUID":"bad"/);
      assert.match(readdirSync(directory()).join(' '), /bad\.json\.corrupt-/);
      // The name is free again.
      await records.write(record('bad'));
      assert.equal((await records.readAll()).length, 2);
    });
  }

  it('leave nothing of a write that was cut off', async () => {
    await records.write(record('a'));
    writeFileSync(`${file('a')}.tmp`, 'half');
    assert.deepEqual(await records.readAll(), [record('a')]);
    assert.deepEqual(errors, []);
  });
});
