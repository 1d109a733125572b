/** Logs that Docker writes show the same text as those of CRI runtimes. */
import assert from 'node:assert/strict';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { lines, timeOfLine, WrittenLog } from './fixtures/written-log.ts';
import { emptyEntry, streams } from './log-entry.ts';
import { LogText, type LogTextOptions } from './log-text.ts';
import { readEntry } from './read-entry.ts';

const time = '2026-03-01T10:00:01.5Z';
const entryOf = (log: string, stream = 'stdout', more: object = {}, at = time) =>
  `${JSON.stringify({ log, stream, ...more, time: at })}\n`;

function textOf(log: string, options: LogTextOptions = {}): string {
  const text = new LogText(options);
  text.push(Buffer.from(log));
  text.endOfContainer();
  return text.take()?.toString() ?? '';
}

describe('a line that Docker wrote', () => {
  it('is shown as the container wrote it, whatever is in it', () => {
    const content = fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('\n', '').toWellFormed());
    const stream = fc.constantFrom('stdout', 'stderr');
    fc.assert(
      fc.property(fc.array(fc.tuple(content, stream, fc.array(content, { maxLength: 3 }))), (all) => {
        const log = all.map(([text, from, parts]) =>
          [...parts, `${text}\n`].map((part) => entryOf(part, from)).join(''),
        );
        const expected = all.map(([text, , parts]) => `${parts.join('')}${text}\n`);
        assert.equal(textOf(log.join('')), expected.join(''));
      }),
    );
  });

  it('may hold what looks like the rest of it, and attributes', () => {
    const tricky = ['","stream":"stderr","time":"x"}', '\\n', '\\', '"', '\\"', 'ends with \\n', '\u2028<&>'];
    for (const text of tricky) {
      assert.equal(textOf(entryOf(`${text}\n`)), `${text}\n`);
      assert.equal(textOf(entryOf(text)), text, 'a part');
    }
    const attrs = { attrs: { stream: 'stderr', time: '","time":"' } };
    assert.equal(
      textOf(entryOf('x\n', 'stdout', attrs), { stream: streams.stdout, timestamps: true }),
      `${time.replace('.5Z', '.500000000Z')} x\n`,
    );
  });

  it('is of its stream, has its time, and is cut at the limit', () => {
    const log = entryOf('out\n') + entryOf('err\n', 'stderr');
    assert.equal(textOf(log, { stream: streams.stderr }), 'err\n');
    assert.equal(textOf(log, { limitBytes: 6 }), 'out\ner');
    const later = Date.parse(time) + 1;
    assert.equal(textOf(log, { sinceMs: later }), '');
    assert.equal(
      textOf(entryOf('pa') + entryOf('rt\n'), { timestamps: true }),
      '2026-03-01T10:00:01.500000000Z part\n',
    );
  });

  it('is left out when it is none', () => {
    for (const line of [
      '{',
      '{}',
      '{"log":"x',
      '{"log":"x"}',
      '{"log":"x","stream":"stdin","time":"t"}',
      '{"log":"x","stream":"stdout","time":"',
    ]) {
      assert.equal(textOf(`${line}\n${entryOf('next\n')}`), 'next\n', line);
    }
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (noise) => {
        const line = Buffer.concat([Buffer.from('{"log":"'), noise]);
        const entry = emptyEntry();
        if (readEntry(line, 0, line.length, entry)) assert.ok(entry.contentEnd <= line.length);
      }),
    );
  });
});

describe('a log that Docker keeps', () => {
  let log: WrittenLog;
  beforeEach(() => {
    log = new WrittenLog();
  });
  afterEach(() => log.dispose());

  it('is read behind its link: its last lines, and those since a time', async () => {
    const count = 20_000;
    const text = Array.from({ length: count }, (_, n) => entryOf(`line ${n}\n`, 'stdout', {}, timeOfLine(n)));
    const kept = join(log.directory, 'id-json.log');
    writeFileSync(kept, text.join(''));
    symlinkSync(kept, log.path);
    assert.equal(await log.read(), lines(0, count));
    for (const tailLines of [0, 1, 5, count - 1]) {
      assert.equal(await log.read({ tailLines }), lines(count - tailLines, count));
    }
    for (const from of [0, 1, count / 2, count - 1]) {
      assert.equal(await log.read({ sinceMs: Date.parse(timeOfLine(from)) }), lines(from, count));
    }
  });
});
