import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { EventLog, type EventLogOptions } from './event-log.ts';
import type { EventObject } from './events.ts';
import { type LogFields, type Logger, silentLogger } from './logger.ts';

const web: EventObject = {
  kind: 'Pod',
  namespace: 'default',
  name: 'web',
  uid: 'u1',
  fieldPath: 'spec.containers{a}',
};

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'event-log-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

function eventLog(options: Partial<EventLogOptions> = {}) {
  const clock = new VirtualClock();
  const logged: [message: string, fields: LogFields | undefined][] = [];
  const log: Logger = {
    ...silentLogger,
    info: (message, fields) => logged.push([message, fields]),
    error: (message) => logged.push([message, undefined]),
  };
  return { clock, logged, events: new EventLog({ nodeName: 'n1', clock, log, ...options }) };
}

describe('the event log', () => {
  it('counts what happens again and keeps the first and last time', async () => {
    const { clock, events } = eventLog();
    events.event(web, 'Normal', 'Pulled', 'Pulled it');
    await clock.advance(5000);
    events.event({ kind: 'Node', name: 'n1' }, 'Normal', 'Starting', 'Starting kubelet.');
    events.event(web, 'Normal', 'Pulled', 'Pulled it');
    const all = events.list();
    assert.deepEqual(
      all.map(({ reason, count }) => [reason, count]),
      [
        ['Starting', 1],
        ['Pulled', 2],
      ],
    );
    const [pulled] = events.list({ uid: 'u1' });
    assert.equal(pulled?.firstTimestamp, '2026-01-01T00:00:00Z');
    assert.equal(pulled?.lastTimestamp, '2026-01-01T00:00:05Z');
    assert.deepEqual(pulled?.involvedObject, { ...web, apiVersion: 'v1' });
    assert.equal(pulled?.metadata.namespace, 'default');
  });

  it('keeps no more than its capacity, the newest', () => {
    const { events } = eventLog({ capacity: 3 });
    for (let n = 0; n < 10; n++) events.event(web, 'Normal', 'R', `m${n}`);
    assert.deepEqual(
      events.list().map(({ message }) => message),
      ['m7', 'm8', 'm9'],
    );
  });

  it('logs as klog does', () => {
    const { events, logged } = eventLog();
    events.event(web, 'Warning', 'Failed', 'no');
    assert.deepEqual(logged, [
      [
        'Event occurred',
        {
          object: 'default/web',
          fieldPath: 'spec.containers{a}',
          kind: 'Pod',
          apiVersion: 'v1',
          type: 'Warning',
          reason: 'Failed',
          message: 'no',
        },
      ],
    ]);
  });

  it('appends one line for each event and flush, however often it happened', async (t) => {
    const file = join(folder(t), 'made/when/needed/events.jsonl');
    const { clock, events } = eventLog({ file });
    for (let n = 0; n < 100; n++) events.event(web, 'Normal', 'Pulled', 'Pulled it');
    events.event(web, 'Normal', 'Started', 'Started it');
    await clock.advance(1000);
    await events.flush();
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
    assert.deepEqual(
      lines.map((line) => [JSON.parse(line).reason, JSON.parse(line).count]),
      [
        ['Pulled', 100],
        ['Started', 1],
      ],
    );
  });

  it('rotates the file, also one left by an earlier run', async (t) => {
    const file = join(folder(t), 'events.jsonl');
    const maxFileBytes = 2000;
    for (let run = 0; run < 4; run++) {
      const { events } = eventLog({ file, maxFileBytes });
      for (let n = 0; n < 20; n++) {
        events.event(web, 'Normal', 'R', `run ${run} message ${n}`);
        await events.flush();
      }
    }
    assert.ok(statSync(file).size <= maxFileBytes);
    assert.ok(statSync(`${file}.1`).size <= maxFileBytes);
    assert.match(readFileSync(file, 'utf8'), /run 3 message 19/);
  });

  it('goes on in memory when the file cannot be written, says so once, and recovers', async (t) => {
    const file = join(folder(t), 'events.jsonl');
    mkdirSync(file);
    const { events, logged } = eventLog({ file });
    for (const message of ['a', 'b']) {
      events.event(web, 'Normal', 'R', message);
      await events.flush();
    }
    assert.equal(events.list().length, 2);
    assert.equal(logged.filter(([message]) => message.startsWith('Cannot write')).length, 1);
    rmSync(file, { recursive: true });
    events.event(web, 'Normal', 'R', 'c');
    await events.flush();
    assert.match(readFileSync(file, 'utf8'), /"c"/);
  });
});
