import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FLAG_NAMES } from '../config/flags/flags.ts';
import type { LoadOptions } from '../config/load-configuration.ts';
import { commandConfigValidate } from './command-config-validate.ts';
import { doctorReport } from './command-doctor.ts';
import { commandHelp } from './command-help.ts';
import { commandVersion, printVersion } from './command-version.ts';
import { parseCommand } from './parse-command.ts';
import { printErrors } from './print-errors.ts';

test('what a command line asks for', () => {
  assert.deepEqual(parseCommand([]), { kind: 'run', given: {} });
  assert.deepEqual(parseCommand(['--v=2']), { kind: 'run', given: { v: 2 } });
  assert.deepEqual(parseCommand(['--version=v1.2.3']), {
    kind: 'run',
    given: { version: 'v1.2.3' },
    reportedVersion: 'v1.2.3',
  });
  assert.deepEqual(parseCommand(['--version']), { kind: 'print-version', form: 'true' });
  assert.deepEqual(parseCommand(['--version=raw']), { kind: 'print-version', form: 'raw' });
  for (const argv of [['-h'], ['--help', '--nope'], ['help']]) assert.equal(parseCommand(argv).kind, 'help');
  assert.deepEqual(parseCommand(['version']), { kind: 'version' });
  assert.deepEqual(parseCommand(['config', 'validate', 'k.yaml', '--config-dir=d']), {
    kind: 'config-validate',
    file: 'k.yaml',
    given: { 'config-dir': 'd' },
  });
});

test('the doctor takes an output form beside the flags of the agent', () => {
  const given = { 'root-dir': '/r' };
  for (const form of [['-o', 'json'], ['-o=json'], ['--output', 'json'], ['--output=json']]) {
    assert.deepEqual(parseCommand(['doctor', ...form, '--root-dir', '/r']), {
      kind: 'doctor',
      output: 'json',
      given,
    });
  }
  assert.deepEqual(parseCommand(['doctor']), { kind: 'doctor', output: 'text', given: {} });
  assert.deepEqual(parseCommand(['--root-dir=/r', 'doctor']), { kind: 'doctor', output: 'text', given });
  assert.equal(parseCommand(['doctor', '-o', 'yaml']).kind, 'invalid');
  assert.equal(parseCommand(['doctor', 'who']).kind, 'invalid');
});

test('the doctor’s report: exit code by errors alone', () => {
  const finding = { check: 'swap', object: '/dev/sda2', problem: 'Swap is on', remedy: 'Turn it off' };
  const report = (...severities: ('error' | 'warning')[]) =>
    doctorReport(
      [
        { name: 'machine', findings: severities.map((severity) => ({ ...finding, severity })) },
        { name: 'ports', findings: [] },
      ],
      'text',
      false,
    );
  assert.deepEqual(report('error', 'warning'), {
    exitCode: 1,
    stdout:
      'error   machine: /dev/sda2: Swap is on\n        Turn it off\n' +
      'warning machine: /dev/sda2: Swap is on\n        Turn it off\n' +
      'ok      ports\nThe node would not work: 1 error, 1 warning.\n',
    stderr: '',
  });
  assert.equal(report('warning').exitCode, 0);
  assert.match(report().stdout, /Nothing is in the way\.\n$/);
  const json = doctorReport(
    [{ name: 'machine', findings: [{ ...finding, severity: 'warning' }] }],
    'json',
    true,
  );
  assert.deepEqual(JSON.parse(json.stdout), { ok: true, findings: [{ ...finding, severity: 'warning' }] });
});

test('wrong command lines say what would be right', () => {
  const message = (...argv: string[]) => {
    const command = parseCommand(argv);
    assert.equal(command.kind, 'invalid');
    return command.kind === 'invalid' ? command.errors.map((error) => error.message) : [];
  };
  assert.deepEqual(message('config'), ['unknown command "config"; did you mean "config validate"?']);
  assert.deepEqual(message('config', 'validate'), ['config validate takes one FILE']);
  assert.deepEqual(message('config', 'validate', 'a', 'b'), ['config validate takes one FILE']);
  assert.deepEqual(message('config', 'validate', 'a', '--config=b'), ['is the FILE itself here']);
  assert.deepEqual(message('verison'), ['unknown command "verison"; did you mean "version"?']);
  assert.deepEqual(message('serve', '--nope'), ['unknown flag --nope', 'unknown command "serve"']);
});

const files: LoadOptions = {
  cwd: '/',
  readFile: (path) =>
    `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n${path === '/good' ? 'protectKernelDefaults: true' : 'maxPod: 1\nport: 0.5'}\n`,
  readDirectory: () => [],
};

test('config validate: every mistake on stderr and exit code 1, or ok', () => {
  assert.deepEqual(commandConfigValidate({ file: 'bad', given: {} }, files), {
    exitCode: 1,
    stdout: '',
    stderr:
      'bad:3: maxPod: unknown field; did you mean maxPods?\nbad:4: port: must be a whole number, not 0.5\n',
  });
  assert.deepEqual(commandConfigValidate({ file: 'good', given: {} }, files), {
    exitCode: 0,
    stdout: 'good: ok\n',
    stderr: 'warning: protectKernelDefaults has no effect yet\n',
  });
});

test('versions', () => {
  const version = { product: '0.1.0', node: 'v24.0.0', platform: 'linux/x64' };
  assert.equal(printVersion('true', version).stdout, 'Kubernetes v1.36.2\n');
  assert.match(
    printVersion('raw', version).stdout,
    /^version\.Info\{Major:"1", Minor:"36", GitVersion:"v1\.36\.2"/,
  );
  assert.match(commandVersion(version).stdout, /^kubelet-ts 0\.1\.0\nKubernetes v1\.36\.2\nNode\.js v24/);
});

test('help names every flag and keeps to the width', () => {
  for (const width of [50, 80, 120]) {
    const { stdout } = commandHelp({ width, color: false });
    for (const name of FLAG_NAMES) assert.ok(stdout.includes(`--${name}`), name);
    const tooLong = stdout
      .split('\n')
      .filter((line) => line.length > width && line.trim().includes(' ') && line.startsWith('  '.repeat(18)));
    // A single word (a path) may stand out, nothing else.
    assert.deepEqual(tooLong, []);
  }
  assert.ok(!commandHelp({ width: 80, color: false }).stdout.includes('\u001b'));
  assert.ok(commandHelp({ width: 80, color: true }).stdout.includes('\u001b['));
});

test('errors stand one a line, place first', () => {
  assert.equal(
    printErrors(
      [
        { file: 'k.yaml', line: 3, field: 'maxPod', message: 'unknown field' },
        { message: 'unknown flag --x' },
      ],
      false,
    ),
    'kubelet: 2 mistakes in flags and configuration\n  k.yaml:3: maxPod: unknown field\n  unknown flag --x\n',
  );
});

test('property: no command line makes it throw', () => {
  const word = fc.oneof(
    fc.string(),
    fc.constantFrom('config', 'validate', 'version', '--version', '--help', '--v', '-v', '--'),
  );
  fc.assert(
    fc.property(fc.array(word, { maxLength: 6 }), (argv) => typeof parseCommand(argv).kind === 'string'),
  );
});
