import assert from 'node:assert/strict';
import { test } from 'node:test';
import { drainFlags, flagValue, parseRunArguments, runsOnce } from './run-options.ts';

test('words of ./run are taken out wherever they stand, the rest goes to the agent in order', () => {
  const options = parseRunArguments(['-v=4', '--keep', '--node-labels', 'a=b']);
  assert.deepEqual(options, { action: 'run', keep: true, kubeletFlags: ['-v=4', '--node-labels', 'a=b'] });
  assert.equal(parseRunArguments(['--stop']).action, 'stop');
  assert.equal(parseRunArguments(['-h']).action, 'help');
});

test('a flag has the value of its last use, in either form and with underscores', () => {
  const flags = ['--healthz-port=1', '--healthz_port', '2', '--config=/a=b'];
  assert.equal(flagValue(flags, 'healthz-port'), '2');
  assert.equal(flagValue(flags, 'config'), '/a=b');
  assert.equal(flagValue(flags, 'port'), undefined);
});

test('draining overrides every source of pods, and is not run once', () => {
  const flags = ['--pod-manifest-path=/m', '--manifest-url=http://x', '--runonce', '--runonce=true', '-v=2'];
  assert.deepEqual(drainFlags(flags, '/empty'), [
    '--pod-manifest-path=/m',
    '--manifest-url=http://x',
    '-v=2',
    '--pod-manifest-path=/empty',
    '--manifest-url=',
  ]);
  assert.deepEqual(drainFlags([], '/empty'), ['--pod-manifest-path=/empty']);
});

test('only a flag that is on makes the agent run once', () => {
  assert.ok(runsOnce(['--runonce']) && runsOnce(['-v=2', '--runonce=true']));
  assert.ok(!runsOnce(['--runonce=false']) && !runsOnce([]));
});
