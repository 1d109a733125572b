import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeRuntime } from '../../../test/fixtures/cri-runtime/fake-runtime.ts';
import { settle, VirtualClock } from '../../concurrency/virtual-clock.ts';
import { silentLogger } from '../../telemetry/logger.ts';
import { CgroupDriver } from '../generated/cri.ts';
import { RuntimeErrorCode } from '../runtime-call-error.ts';
import { checkRuntime, UnsupportedRuntimeError } from './runtime-check.ts';

function setUp() {
  const clock = new VirtualClock();
  const runtime = new FakeRuntime({ clock });
  const warnings: string[] = [];
  const logger = { ...silentLogger, warn: (message: string) => warnings.push(message) };
  const stop = new AbortController();
  const check = (giveUpAfterMs?: number) =>
    checkRuntime({
      runtime,
      clock,
      logger,
      signal: stop.signal,
      ...(giveUpAfterMs !== undefined && { giveUpAfterMs }),
    });
  return { clock, runtime, warnings, stop, check };
}

const down = { error: { code: RuntimeErrorCode.Unavailable, text: 'connect ENOENT' } };

describe('checkRuntime', () => {
  it('tells what the runtime is', async () => {
    const { runtime, check } = setUp();
    runtime.facts.networkReady = false;
    const facts = await check();
    assert.deepEqual([facts.name, facts.version, facts.apiVersion], ['containerd', '1.6.20~ds1', 'v1']);
    assert.equal(facts.cgroupDriver, undefined);
    assert.deepEqual(
      facts.conditions.map(({ type, status }) => [type, status]),
      [
        ['RuntimeReady', true],
        ['NetworkReady', false],
      ],
    );
  });

  it('takes the cgroup driver from a runtime that tells it', async () => {
    const { runtime, check } = setUp();
    runtime.facts.unimplemented.delete('RuntimeConfig');
    for (const [driver, name] of [
      [CgroupDriver.SYSTEMD, 'systemd'],
      [CgroupDriver.CGROUPFS, 'cgroupfs'],
    ] as const) {
      runtime.facts.cgroupDriver = driver;
      assert.equal((await check()).cgroupDriver, name);
    }
  });

  it('waits for a runtime that is still starting and says so once', async () => {
    const { clock, runtime, warnings, check } = setUp();
    runtime.fail('Version', { ...down, times: 8 });
    const facts = check();
    await clock.advance(100 + 200 + 400 + 800 + 1600 + 3200 + 5000 + 5000);
    assert.equal((await facts).name, 'containerd');
    assert.deepEqual(warnings, ['Waiting for the container runtime']);
  });

  it('gives up after the time it was given, or on its signal', async () => {
    const { clock, runtime, stop, check } = setUp();
    runtime.fail('Version', down);
    const late = assert.rejects(check(1000), { code: RuntimeErrorCode.Unavailable });
    await clock.advance(1000);
    await late;
    const aborted = assert.rejects(check(), { name: 'AbortError' });
    await settle();
    stop.abort();
    await aborted;
  });

  it('does not wait for a runtime that speaks no CRI v1', async () => {
    const { runtime, check } = setUp();
    const text = 'unknown service runtime.v1.RuntimeService';
    runtime.fail('Version', { error: { code: RuntimeErrorCode.Unimplemented, text } });
    await assert.rejects(check(), UnsupportedRuntimeError);
  });

  it('does without the cgroup driver after three tries', async () => {
    const { clock, runtime, warnings, check } = setUp();
    runtime.facts.unimplemented.delete('RuntimeConfig');
    runtime.fail('RuntimeConfig', { error: { code: RuntimeErrorCode.Unknown, text: 'no' } });
    const facts = check();
    await clock.advance(4000);
    assert.equal((await facts).cgroupDriver, undefined);
    assert.equal(runtime.requestsOf('RuntimeConfig').length, 3);
    assert.equal(warnings.length, 1);
  });
});
