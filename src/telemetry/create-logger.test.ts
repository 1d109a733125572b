import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { createLogger, type LoggerOptions } from './create-logger.ts';
import type { Severity } from './log-record.ts';

const startAt = new Date(2026, 10, 30, 17, 20, 20, 123).getTime();

function logger(options: Partial<LoggerOptions> = {}) {
  const lines: string[] = [];
  const severities: Severity[] = [];
  const log = createLogger({
    format: 'text',
    verbosity: 2,
    clock: new VirtualClock(startAt),
    write(line, severity) {
      lines.push(line);
      severities.push(severity);
    },
    ...options,
  });
  return { log, lines, severities };
}

/** The line without severity, time and process id. */
const body = (line: string | undefined) => line?.slice(line.indexOf('] ') + 2, -1);

describe('klog text', () => {
  it('writes the header in klog columns', () => {
    const { log, lines } = logger();
    log.info('Message', { key: 'value', pod: 'ns/name' });
    const pid = String(process.pid).padStart(7);
    assert.deepEqual(lines, [
      `I1130 17:20:20.123000 ${pid} kubelet:1] "Message" key="value" pod="ns/name"\n`,
    ]);
  });

  it('names the room as the source and keeps bound fields, the innermost winning', () => {
    const { log, lines } = logger();
    const room = log.with({ logger: 'sources', source: 'file' }).with({ path: '/etc/kubernetes' });
    room.info('Watching', { path: '/other', n: 1 });
    assert.match(lines[0] ?? '', / sources:1\] "Watching" source="file" path="\/other" n=1\n$/);
  });

  it('puts the error first, with its causes', () => {
    const { log, lines, severities } = logger();
    log.error('Failed', new Error('cannot read x', { cause: new Error('EACCES') }), { file: 'x' });
    assert.equal(body(lines[0]), '"Failed" err="cannot read x: EACCES" file="x"');
    assert.deepEqual(severities, ['E']);
    assert.ok(lines[0]?.startsWith('E1130 '));
  });

  it('shows where a programming mistake was made', () => {
    const { log, lines } = logger();
    log.error('Failed', new TypeError('x is not a function'));
    assert.match(lines[0] ?? '', /stack=<\n\tTypeError: x is not a function\n\t {4}at /);
  });

  const values: [name: string, value: unknown, text: string][] = [
    ['a number', 1.5, '1.5'],
    ['a boolean', true, 'true'],
    ['nothing', null, 'null'],
    ['undefined', undefined, 'null'],
    ['a list', ['a', 1], '["a",1]'],
    ['an object', { a: { b: 1n } }, '{"a":{"b":"1"}}'],
    ['an error', new Error('no'), '"no"'],
    ['quotes', 'a "b" \\c', '"a \\"b\\" \\\\c"'],
    ['controls', 'a\tb\u0000\u001b', '"a\\tb\\x00\\x1b"'],
    ['printable letters', 'Größe 日本', '"Größe 日本"'],
    ['odd spaces', 'a\u00a0b\u2028', '"a\\u00a0b\\u2028"'],
    ['several lines', 'one\ntwo\n', '<\n\tone\n\ttwo\n >'],
  ];
  for (const [name, value, expected] of values) {
    it(`writes ${name}`, () => {
      const { log, lines } = logger();
      log.info('M', { k: value });
      assert.equal(body(lines[0]), `"M" k=${expected}`);
    });
  }

  it('survives values that cannot be written', () => {
    const { log, lines } = logger();
    const loop: Record<string, unknown> = {};
    loop.self = loop;
    const hostile = {
      toJSON() {
        throw new Error('no');
      },
      toString() {
        throw new Error('no');
      },
    };
    log.info('M', { loop, hostile });
    assert.equal(body(lines[0]), '"M" loop="[object Object]" hostile="<unprintable>"');
  });
});

describe('verbosity', () => {
  it('drops what is more detailed, and changes while running for loggers made before', () => {
    const { log, lines } = logger();
    const room = log.with({ logger: 'pods' });
    room.v(2, 'shown');
    room.v(4, 'hidden');
    assert.equal(room.enabled(4), false);
    log.setVerbosity(4);
    room.v(4, 'now shown');
    assert.deepEqual(lines.map(body), ['"shown"', '"now shown"']);
  });

  it('follows vmodule patterns by room', () => {
    const { log } = logger({
      vmodule: [
        { filePattern: 'prob*', verbosity: 6 },
        { filePattern: 'pod?', verbosity: 0 },
      ],
    });
    assert.equal(log.with({ logger: 'probes' }).enabled(6), true);
    assert.equal(log.with({ logger: 'pods' }).enabled(1), false);
    assert.equal(log.enabled(2), true);
  });
});

describe('JSON', () => {
  it('writes information, warnings and errors with the keys of the Kubernetes format', () => {
    const { log, lines } = logger({ format: 'json', verbosity: 4 });
    log.v(4, 'Trace', { n: 1 });
    log.warn('Careful');
    log.with({ logger: 'sources' }).error('Failed', new Error('boom'), { pod: 'a/b', msg: 'mine' });
    assert.deepEqual(
      lines.map((line) => JSON.parse(line)),
      [
        { ts: startAt, caller: 'kubelet:1', msg: 'Trace', v: 4, n: 1 },
        { ts: startAt, caller: 'kubelet:1', msg: 'Careful', v: 0, severity: 'warning' },
        { ts: startAt, caller: 'sources:1', msg: 'Failed', err: 'boom', pod: 'a/b', msg_: 'mine' },
      ],
    );
  });
});

describe('any fields', () => {
  it('make one parsable JSON line, and one klog line whose continuations are indented', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary' }),
        fc.dictionary(fc.string(), fc.anything()),
        (message, fields) => {
          const json = logger({ format: 'json' });
          json.log.info(message, fields);
          const line = json.lines[0] ?? '';
          assert.equal(line.indexOf('\n'), line.length - 1);
          assert.equal(JSON.parse(line).msg, message);

          const text = logger();
          text.log.info(message, { value: Object.values(fields)[0] });
          const [, ...more] = (text.lines[0] ?? '').trimEnd().split('\n');
          assert.ok(more.every((part) => /^(\t| >)/.test(part)));
        },
      ),
    );
  });
});
