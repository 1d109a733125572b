import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { outputLimit, ProbeTimeoutError } from '../probe-outcome.ts';
import { type ExecSync, execDeadlineMs, probeExec } from './exec.ts';

const forever = new AbortController().signal;
type Answer = Awaited<ReturnType<ExecSync['execSync']>>;

const answer = (exitCode: number, stdout = '', stderr = ''): Answer => ({
  exitCode,
  stdout: Buffer.from(stdout),
  stderr: Buffer.from(stderr),
});

function probe(call: ExecSync['execSync'], options: { timeoutMs?: number; signal?: AbortSignal } = {}) {
  const { timeoutMs = 1000, signal = forever } = options;
  const command = ['cat', '/tmp/health'];
  return probeExec({ exec: { execSync: call }, containerId: 'c1', command, timeoutMs }, signal);
}

describe('the exec probe', () => {
  const table: readonly (readonly [string, Answer, string, string])[] = [
    ['exit code 0', answer(0, 'ok'), 'success', 'ok'],
    ['another exit code', answer(1, 'out ', 'err'), 'failure', 'out err'],
    ['silence', answer(3), 'failure', 'command "cat /tmp/health" exited with code 3'],
    ['a lot of output', answer(1, 'x'.repeat(20_000), 'y'), 'failure', 'x'.repeat(outputLimit)],
    [
      'output in two parts',
      answer(1, 'x'.repeat(10_000), 'y'.repeat(10_000)),
      'failure',
      `${'x'.repeat(10_000)}${'y'.repeat(240)}`,
    ],
  ];
  for (const [name, answered, result, output] of table) {
    it(`judges ${name}`, async () => {
      assert.deepEqual(await probe(async () => answered), { result, output });
    });
  }

  it('asks the runtime to end the process in time, in whole seconds', async () => {
    const asked: bigint[] = [];
    for (const timeoutMs of [1000, 2500, 100]) {
      await probe(
        async ({ timeout }) => {
          asked.push(timeout);
          return answer(0);
        },
        { timeoutMs },
      );
    }
    assert.deepEqual(asked, [1n, 3n, 1n]);
    assert.deepEqual([1000, 2500, 100].map(execDeadlineMs), [2000, 2500, 100]);
  });

  it('has failed when the runtime says that the time was up', async () => {
    const late = Object.assign(new Error('DeadlineExceeded'), { deadlineExceeded: true });
    assert.deepEqual(await probe(() => Promise.reject(late)), {
      result: 'failure',
      output: 'command timed out: "cat /tmp/health" timed out after 1s',
    });
  });

  it('cancels the call when the time is up here, and has failed even if the runtime never answers', async () => {
    const abort = new AbortController();
    let given: AbortSignal | undefined;
    const running = probe(
      (_request, options) => {
        given = options?.signal;
        return new Promise(() => {});
      },
      { timeoutMs: 100, signal: abort.signal },
    );
    abort.abort(new ProbeTimeoutError(100));
    assert.deepEqual(await running, {
      result: 'failure',
      output: 'command timed out: "cat /tmp/health" timed out after 0.1s',
    });
    assert.equal(given?.aborted, true);
  });

  it('ends what it has left behind when its time is up, before it says so, and only then', async () => {
    const late = Object.assign(new Error('DeadlineExceeded'), { deadlineExceeded: true });
    const aborted = AbortSignal.abort(new ProbeTimeoutError(100));
    const calls: readonly [ExecSync['execSync'], AbortSignal, number][] = [
      [() => Promise.reject(late), forever, 1],
      [() => new Promise(() => {}), aborted, 1],
      [async () => answer(0), forever, 0],
      [async () => answer(1), forever, 0],
      [() => Promise.reject(new Error('no connection')), forever, 0],
    ];
    for (const [execSync, signal, wanted] of calls) {
      let kills = 0;
      const kill = async () => {
        await Promise.resolve();
        kills++;
      };
      const target = { exec: { execSync }, containerId: 'c1', command: ['sleep'], timeoutMs: 1000 };
      await probeExec({ ...target, leftovers: { kill } }, signal);
      assert.equal(kills, wanted, execSync.toString());
    }
  });

  it('knows nothing when the runtime cannot be asked', async () => {
    assert.deepEqual(await probe(() => Promise.reject(new Error('no connection'))), {
      result: 'unknown',
      error: 'no connection',
    });
  });
});
