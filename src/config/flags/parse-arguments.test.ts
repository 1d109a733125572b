import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FLAG_NAMES } from './flags.ts';
import { parseArguments } from './parse-arguments.ts';

const given = (...argv: string[]) => {
  const parsed = parseArguments(argv);
  assert.deepEqual(parsed.errors, []);
  return parsed.given;
};
const errors = (...argv: string[]) =>
  parseArguments(argv).errors.map(({ flag, message }) => (flag ? `--${flag}: ${message}` : message));

test('every way to write a flag', () => {
  assert.deepEqual(
    given('--max-pods=5', '--root_dir', '/x', '-v', '3', '--register-node=false', '--fail-swap-on'),
    {
      'max-pods': 5,
      'root-dir': '/x',
      v: 3,
      'register-node': false,
      'fail-swap-on': true,
    },
  );
  assert.deepEqual(given('-v4'), { v: 4 });
  assert.deepEqual(given('-v=5', '--config='), { v: 5, config: '' });
  assert.deepEqual(given('-h'), { help: true });
  assert.deepEqual(parseArguments(['--fail-swap-on', 'false', '--', '--x']).words, ['false', '--x']);
  assert.deepEqual(given('--manifest-url', '-'), { 'manifest-url': '-' });
});

test('values by type', () => {
  const table: [string[], unknown][] = [
    [['--node-status-max-images=0x10'], { 'node-status-max-images': 16 }],
    [['--max-pods=1_000'], { 'max-pods': 1000 }],
    [['--oom-score-adj=-0'], { 'oom-score-adj': 0 }],
    [['--max-open-files=010'], { 'max-open-files': 8 }],
    [
      ['--cluster-dns=1.1.1.1,8.8.8.8', '--cluster-dns=::1'],
      { 'cluster-dns': ['1.1.1.1', '8.8.8.8', '::1'] },
    ],
    [['--allowed-unsafe-sysctls="a,b",c'], { 'allowed-unsafe-sysctls': ['a,b', 'c'] }],
    [
      ['--kube-reserved=cpu=1, memory=1Gi', '--kube-reserved=pid=5'],
      { 'kube-reserved': { cpu: '1', memory: '1Gi', pid: '5' } },
    ],
    [['--kube-reserved=cpu=1', '--kube-reserved='], { 'kube-reserved': {} }],
    [['--eviction-hard=memory.available<5%'], { 'eviction-hard': { 'memory.available': '5%' } }],
    [['--feature-gates=A=true,B=F'], { 'feature-gates': { A: true, B: false } }],
    [['--manifest-url-header=a:b,a:c:d,e:'], { 'manifest-url-header': { a: ['b', 'c:d'], e: [''] } }],
    [
      ['--register-with-taints=a=b:NoSchedule,c:NoExecute'],
      {
        'register-with-taints': [
          { key: 'a', value: 'b', effect: 'NoSchedule' },
          { key: 'c', effect: 'NoExecute' },
        ],
      },
    ],
    [
      ['--reserved-memory=0:memory=1Gi,hugepages-2Mi=4Mi;1:memory=2Gi'],
      {
        'reserved-memory': [
          { numaNode: 0, limits: { memory: '1Gi', 'hugepages-2Mi': '4Mi' } },
          { numaNode: 1, limits: { memory: '2Gi' } },
        ],
      },
    ],
    [
      ['--vmodule=pods*=4,cri=2'],
      {
        vmodule: [
          { filePattern: 'pods*', verbosity: 4 },
          { filePattern: 'cri', verbosity: 2 },
        ],
      },
    ],
    [['--version'], { version: 'true' }],
    [['--version=raw'], { version: 'raw' }],
    [['--version=v1.30.0-ours+1'], { version: 'v1.30.0-ours+1' }],
    [['--log-text-info-buffer-size=4Ki'], { 'log-text-info-buffer-size': '4Ki' }],
  ];
  for (const [argv, expected] of table) assert.deepEqual(given(...argv), expected, argv.join(' '));
});

test('all mistakes at once, with the nearest name', () => {
  assert.deepEqual(
    errors(
      '--max-podz',
      '7',
      '--address=x',
      '--file-check-frequency=5',
      '-config=a',
      '-q',
      '--v=-1',
      '--port',
    ),
    [
      'unknown flag --max-podz; did you mean --max-pods?',
      '--address: needs an IP address, not "x"',
      '--file-check-frequency: needs a duration such as 10s or 1m30s, not "5"',
      'unknown flag -config; did you mean --config?',
      'unknown flag -q',
      '--v: needs a level from 0, not -1',
      '--port: needs a value',
    ],
  );
  for (const wrong of [
    '--kube-reserved=cpu',
    '--kube-reserved==1',
    '--feature-gates=A=yes',
    '--max-pods=2147483648',
    '--max-pods=1.5',
    '--max-pods=08',
    '--reserved-memory=memory=1',
    '--reserved-memory=0:memory=x',
    '--register-with-taints=a',
    '--vmodule=a=-1',
    '--version=5',
    '--log-text-info-buffer-size=x',
    '--register-node=maybe',
  ]) {
    assert.equal(errors(wrong).length, 1, wrong);
  }
});

test('a map holds any key', () => {
  const labels = given('--node-labels=__proto__=x,constructor=y')['node-labels']!;
  assert.deepEqual(Object.entries(labels), [
    ['__proto__', 'x'],
    ['constructor', 'y'],
  ]);
});

test('property: no command line makes it throw', () => {
  const name = fc.constantFrom(...FLAG_NAMES);
  const value = fc.oneof(
    fc.string(),
    fc.constantFrom('1', '', 'a=b', '5%', 'true', '1s', '::', '0:memory=1', 'a:b:c'),
  );
  const argument = fc.oneof(
    fc.string(),
    name.map((n) => `--${n}`),
    fc.tuple(name, value).map(([n, v]) => `--${n}=${v}`),
    value,
  );
  fc.assert(
    fc.property(fc.array(argument), (argv) => {
      const { errors } = parseArguments(argv);
      assert.ok(errors.every(({ message }) => message !== ''));
    }),
    { numRuns: 500 },
  );
});
