import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { streams } from './log-entry.ts';
import { LogText, type LogTextOptions, longestEntry, mostHeld } from './log-text.ts';

const at = (second: number, fraction = '.000000000') =>
  `2026-03-01T10:00:${String(second).padStart(2, '0')}${fraction}+02:00`;

function textOf(log: string, options: LogTextOptions = {}, cuts: readonly number[] = []): string {
  const bytes = Buffer.from(log);
  const text = new LogText(options);
  let out = '';
  let from = 0;
  for (const cut of [...cuts]
    .sort((a, b) => a - b)
    .map((one) => Math.min(one, bytes.length))
    .concat(bytes.length)) {
    text.push(Buffer.from(bytes.subarray(from, cut)));
    out += text.take()?.toString() ?? '';
    from = cut;
  }
  text.endOfContainer();
  return out + (text.take()?.toString() ?? '');
}

describe('LogText', () => {
  it('shows the content of whole lines', () => {
    assert.equal(
      textOf(`${at(1)} stdout F one\n${at(2)} stderr F \n${at(3)} stdout F:x three\n`),
      'one\n\nthree\n',
    );
  });

  it('joins the parts of a line, with the time of the first', () => {
    const log = `${at(1, '.5')} stdout P one \n${at(2)} stdout P two \n${at(3)} stdout F three\n`;
    assert.equal(textOf(log), 'one two three\n');
    assert.equal(textOf(log, { timestamps: true }), `${at(1, '.500000000')} one two three\n`);
  });

  it('lets no line of one stream break into a line of the other', () => {
    const log =
      `${at(1)} stdout P long \n${at(2)} stderr P bad \n${at(3)} stdout F line\n` +
      `${at(4)} stdout F next\n${at(5)} stderr F luck\n`;
    assert.equal(textOf(log), 'long line\nbad luck\nnext\n');
  });

  it('lets what is held go when it becomes too much, and when there is no more', () => {
    const count = Math.ceil(mostHeld / 1000);
    const held = `${at(2)} stderr F ${'x'.repeat(1000)}\n`.repeat(count);
    const text = textOf(`${at(1)} stdout P begin-\n${held}${at(3)} stdout F end\n`);
    assert.equal(text.length, 'begin-end\n'.length + 1001 * count);
    assert.ok(text.startsWith('begin-xxx'), 'what had waited too long comes first');
    const waiting = new LogText();
    waiting.push(Buffer.from(`${at(1)} stdout P begin-\n${at(2)} stderr F error\n`));
    assert.equal(String(waiting.take()), 'begin-');
    waiting.release();
    assert.equal(String(waiting.take()), 'error\n');
    waiting.push(Buffer.from(`${at(1)} stdout F end\n`));
    assert.equal(String(waiting.take()), 'end\n');
  });

  it('leaves out what is older than asked for, a line as a whole', () => {
    const log = `${at(1)} stdout P a\n${at(3)} stdout F b\n${at(2)} stderr F c\n${at(4)} stdout F d\n`;
    assert.equal(textOf(log, { sinceMs: Date.parse(at(2)) }), 'c\nd\n');
    assert.equal(textOf(log, { sinceMs: Date.parse(at(2)) + 0.001 }), 'd\n');
  });

  it('shows one stream only', () => {
    const log = `${at(1)} stdout P a\n${at(3)} stderr F b\n${at(2)} stdout F c\n`;
    assert.equal(textOf(log, { stream: streams.stdout }), 'ac\n');
    assert.equal(textOf(log, { stream: streams.stderr }), 'b\n');
  });

  it('counts the limit in bytes of text, times included', () => {
    const log = `${at(1)} stdout F one\n${at(2)} stdout F two\n`;
    assert.equal(textOf(log, { limitBytes: 6 }), 'one\ntw');
    assert.equal(textOf(log, { limitBytes: 40, timestamps: true }), `${at(1)} one\n`.slice(0, 40));
    const text = new LogText({ limitBytes: 4 });
    text.push(Buffer.from(log));
    assert.equal(text.isFull, true);
  });

  it('leaves out what is no entry, however long', () => {
    const log = `nonsense\n\n${at(1)} stdnone F x\n${at(1)} stdout Q x\n${at(1)} stdout F ok\n`;
    assert.equal(textOf(log), 'ok\n');
    const endless = new LogText();
    for (let sent = 0; sent < 3 * longestEntry; sent += 65_536) endless.push(Buffer.alloc(65_536, 'x'));
    endless.push(Buffer.from(`x\n${at(1)} stdout F ok\n`));
    assert.equal(String(endless.take()), 'ok\n');
  });

  it('shows a last entry without a line break', () => {
    assert.equal(textOf(`${at(1)} stdout F one\n${at(2)} stdout F tw`), 'one\ntw');
  });

  it('says the same however the log is cut', () => {
    const entry = fc.record({
      stream: fc.constantFrom('stdout', 'stderr'),
      tag: fc.constantFrom('P', 'F', 'F:x'),
      content: fc.string({ unit: 'grapheme', maxLength: 30 }).map((text) => text.replaceAll('\n', ' ')),
      second: fc.integer({ min: 0, max: 59 }),
    });
    const options = fc.record(
      {
        timestamps: fc.boolean(),
        sinceMs: fc.integer({ min: 0, max: 59 }).map((second) => Date.parse(at(second))),
        stream: fc.constantFrom(1 as const, 2 as const),
        limitBytes: fc.integer({ min: 1, max: 500 }),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(
        fc.array(entry, { maxLength: 20 }),
        options,
        fc.array(fc.nat(2000), { maxLength: 30 }),
        (entries, asked, cuts) => {
          const log = entries
            .map((one) => `${at(one.second)} ${one.stream} ${one.tag} ${one.content}\n`)
            .join('');
          assert.equal(textOf(log, asked, cuts), textOf(log, asked));
        },
      ),
    );
  });

  it('says what each stream wrote, byte for byte', () => {
    const write = fc.record({
      stream: fc.constantFrom('stdout', 'stderr'),
      content: fc.string({ unit: 'binary-ascii', maxLength: 40 }).map((text) => text.replaceAll('\n', '')),
      part: fc.integer({ min: 1, max: 10 }),
    });
    fc.assert(
      fc.property(fc.array(write, { maxLength: 15 }), (writes) => {
        const log = writes.map(({ stream, content, part }) => {
          const parts = content.match(new RegExp(`[^]{1,${part}}`, 'g')) ?? [''];
          return parts
            .map((one, i) => `${at(1)} ${stream} ${i === parts.length - 1 ? 'F' : 'P'} ${one}\n`)
            .join('');
        });
        assert.equal(textOf(log.join('')), writes.map(({ content }) => `${content}\n`).join(''));
      }),
    );
  });
});
