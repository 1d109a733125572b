import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseYaml, YamlError } from './yaml.ts';

const one = (text: string) => {
  const documents = parseYaml(text);
  assert.equal(documents.length, 1);
  return documents[0]!.value;
};
const scalar = (text: string) => (one(`v: ${text}`) as { v: unknown }).v;

test('scalars mean what they mean to Go', () => {
  const table: [string, unknown][] = [
    ['0644', 420],
    ['0o644', 420],
    ['0x1F', 31],
    ['0b101', 5],
    ['-0b11', -3],
    ['-0x10', -16],
    ['089', 89],
    ['+5', 5],
    ['-0', 0],
    ['1_000', 1000],
    ['1e3', 1000],
    ['1.', 1],
    ['.5', 0.5],
    ['-1.5', -1.5],
    ['1e400', '1e400'],
    ['12:30:45', '12:30:45'],
    ['2001-12-14', '2001-12-14'],
    ['2001-12-14t21:59:43.10-05:00', '2001-12-14t21:59:43.10-05:00'],
    ['1.2.3', '1.2.3'],
    ['100m', '100m'],
    ['yes', true],
    ['Yes', true],
    ['YES', true],
    ['on', true],
    ['off', false],
    ['No', false],
    ['yEs', 'yEs'],
    ['true', true],
    ['FALSE', false],
    ['y', 'y'],
    ['N', 'N'],
    ['~', null],
    ['', null],
    ['Null', null],
    ['"true"', 'true'],
    ["'5'", '5'],
    ['_5', '_5'],
    ['0xg', '0xg'],
    ['+', '+'],
    ['!!str 5', '5'],
    ['!!int "5"', 5],
    ['!!float 5', 5],
    ['! 5', '5'],
    ['!custom 5', '5'],
    ['!!timestamp 2001-12-14', '2001-12-14'],
  ];
  for (const [text, expected] of table) assert.deepEqual(scalar(text), expected, text);
});

test('block scalars, lists and keys', () => {
  assert.deepEqual(one('a: |\n  x\n  y\nb: >-\n  x\n  y\n1: one\ntrue: yes\n1.5: f\n'), {
    a: 'x\ny\n',
    b: 'x y',
    '1': 'one',
    true: true,
    '1.5': 'f',
  });
});

const refused: [string, string, RegExp, number][] = [
  ['duplicate keys', 'a: 1\nb: 2\na: 3\n', /duplicate key "a"/, 3],
  ['duplicate keys after conversion', '1: a\n"1": b\n', /duplicate key "1"/, 2],
  ['duplicate keys in JSON', '{"a": 1,\n "a": 2}', /duplicate key "a"/, 2],
  ['integers that lose digits', 'a:\n  b: 9007199254740993\n', /too large to be read exactly/, 2],
  ['integers that lose digits, JSON', '{\n"a": [9007199254740993]}', /too large to be read exactly/, 2],
  ['integers beyond 64 bits', 'a: 123456789012345678901234567890', /too large/, 1],
  ['not a number', 'a: .nan', /cannot be expressed/, 1],
  ['binary', 'a: !!binary aGk=', /binary/, 1],
  ['a null key', 'a:\n  ~: 1', /key is missing or null/, 2],
  ['a mapping as key', '? {a: 1}\n: 2', /key must be a plain value/, 1],
  ['an unknown alias', 'a: *b', /no anchor/, 1],
  ['an alias in its own anchor', 'a: &a [*a]', /inside its own anchor/, 1],
  ['a wrong merge', 'a:\n  <<: 5', /takes a mapping/, 2],
  ['a bad tag', 'a: !!int x', /cannot be read as !!int/, 1],
  ['bad indentation', 'a: 1\n b: 2\n', /./, 2],
  ['tabs', 'a:\n\tb: 1\n', /./, 2],
  ['NUL', 'a: \0', /./, 1],
];
for (const [title, text, reason, line] of refused) {
  test(`refuses ${title}`, () => {
    assert.throws(
      () => parseYaml(text),
      (error) =>
        error instanceof YamlError && reason.test(error.reason) && error.line === line && error.column > 0,
    );
  });
}

test('aliases are copies and merges keep own keys', () => {
  const value = one(
    'base: &b {x: 1, y: {z: 2}}\na:\n  x: 5\n  <<: *b\nc: *b\nd:\n  <<: [{x: 7}, *b]\n',
  ) as Record<string, { y?: unknown }>;
  assert.deepEqual(value['a'], { x: 5, y: { z: 2 } });
  assert.deepEqual(value['d'], { x: 7, y: { z: 2 } });
  assert.notEqual(value['c']!.y, value['base']!.y);
  assert.deepEqual(one('"<<": {a: 1}'), { '<<': { a: 1 } });
});

test('an alias bomb is refused quickly', () => {
  const levels = ['a: &a [x,x,x,x,x,x,x,x,x]'];
  for (let i = 1; i < 12; i++) {
    const previous = String.fromCharCode(96 + i);
    const name = String.fromCharCode(97 + i);
    levels.push(`${name}: &${name} [${Array(9).fill(`*${previous}`).join(',')}]`);
  }
  assert.throws(() => parseYaml(levels.join('\n')), /too many values/);
  assert.throws(() => parseYaml('a: &a [1,2]\nb: [*a,*a]', { maxAliasExpansion: 5 }), /too many values/);
  const deep = ['a0: &a0 1'];
  for (let i = 1; i < 30; i++) deep.push(`a${i}: &a${i} ${'['.repeat(90)}*a${i - 1}${']'.repeat(90)}`);
  assert.throws(() => parseYaml(deep.join('\n')), YamlError);
  assert.throws(() => parseYaml('['.repeat(100_000)), YamlError);
  assert.throws(() => parseYaml(`{"a":${'['.repeat(200)}${']'.repeat(200)}}`), YamlError);
});

test('__proto__ is an ordinary key', () => {
  for (const text of ['__proto__:\n  polluted: true\n', '{"__proto__": {"polluted": true}}']) {
    const value = one(text) as Record<string, unknown>;
    assert.equal(value['polluted'], undefined);
    assert.deepEqual(Object.keys(value), ['__proto__']);
    assert.equal(Object.getPrototypeOf(value), Object.prototype);
  }
});

test('several documents, each with its lines', () => {
  const documents = parseYaml('# first\na: 1\nlist:\n  - x: 1\n    y: 2\n  - z\n---\nb:\n  c: 3\n---\n');
  assert.equal(documents.length, 3);
  const [first, second, third] = documents;
  assert.equal(first!.lineOf([]), 2);
  assert.equal(first!.lineOf(['list']), 3);
  assert.equal(first!.lineOf(['list', 0, 'y']), 5);
  assert.equal(first!.lineOf(['list', 1]), 6);
  assert.equal(first!.lineOf(['list', 0, 'missing', 'deeper']), 4);
  assert.equal(second!.lineOf(['b', 'c']), 9);
  assert.equal(third!.value, null);
  assert.equal(third!.lineOf(['a']), undefined);
  assert.deepEqual(parseYaml(''), []);
  assert.deepEqual(parseYaml('# only a comment\n'), []);
});

test('JSON is read exactly, with lines; what only looks like JSON is YAML', () => {
  const text = '{\r\n\t"a": [1, {"b": "\\u00e9\\n"}],\r\n\t"c": null\r\n}\r\n';
  const [document] = parseYaml(text);
  assert.deepEqual(document!.value, JSON.parse(text));
  assert.equal(document!.lineOf(['c']), 3);
  assert.equal(document!.lineOf(['a', 1, 'b']), 2);
  assert.deepEqual(one('{a: b, c: [0644]}'), { a: 'b', c: [420] });
  assert.deepEqual(one('{"yes": "no"}'), { yes: 'no' });
});

const hasBigInteger = (value: unknown): boolean =>
  typeof value === 'number'
    ? Number.isInteger(value) && !Number.isSafeInteger(value)
    : typeof value === 'object' && value !== null && Object.values(value).some(hasBigInteger);

test('property: JSON objects survive', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (object) => {
      fc.pre(!hasBigInteger(object));
      const text = JSON.stringify(object);
      assert.deepEqual(one(text), JSON.parse(text));
      assert.deepEqual((one(`x: 1\nv: ${text}`) as { v: unknown }).v, JSON.parse(text));
    }),
    { numRuns: 200 },
  );
});

test('property: any text gives documents or a YamlError', () => {
  const piece = fc.constantFrom(
    'a',
    ': ',
    '\n',
    '  ',
    '- ',
    '&a ',
    '*a',
    '{',
    '}',
    '[',
    ']',
    ',',
    '"',
    "'",
    '|',
    '>',
    '!',
    '<<: ',
    '---\n',
    '#',
    '\t',
    '0',
    '? ',
    '%',
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.array(piece).map((parts) => parts.join('')),
      ),
      (text) => {
        try {
          for (const document of parseYaml(text)) {
            JSON.stringify(document.value);
            document.lineOf(['a', 0]);
          }
        } catch (error) {
          assert.ok(error instanceof YamlError, String(error));
        }
      },
    ),
    { numRuns: 1000 },
  );
});
