import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeRuntime } from '../../test/fixtures/cri-runtime/fake-runtime.ts';
import { settle, VirtualClock } from '../concurrency/virtual-clock.ts';
import { checkRuntime, type RuntimeFacts } from '../runtime/cri/runtime-check.ts';
import { RuntimeErrorCode } from '../runtime/runtime-call-error.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { CurrentRuntime } from './current-runtime.ts';

async function setUp() {
  const clock = new VirtualClock();
  const runtime = new FakeRuntime({ clock });
  const stop = new AbortController();
  const listeners = new Set<() => void>();
  const connection = {
    onReconnect(listener: () => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const errors: string[] = [];
  const logger = { ...silentLogger, error: (message: string) => errors.push(message) };
  const common = { runtime, clock, logger, signal: stop.signal };
  const changes: RuntimeFacts[] = [];
  const current = new CurrentRuntime({
    ...common,
    connection,
    facts: await checkRuntime(common),
    onChange: (facts) => changes.push(facts),
  });
  current.watch();
  const reconnect = async () => {
    for (const listener of listeners) listener();
    await settle();
  };
  return { clock, runtime, current, changes, errors, reconnect, stop, listeners };
}

describe('a runtime that is upgraded under the agent', () => {
  it('is asked anew when it is back', async () => {
    const { runtime, current, changes, reconnect } = await setUp();
    assert.equal(current.facts.version, '1.6.20~ds1');
    runtime.facts.runtimeVersion = '2.1.9';
    runtime.facts.features = { supplementalGroupsPolicy: true, userNamespacesHostNetwork: false };
    runtime.facts.runtimeHandlers = [
      { name: '', features: { recursiveReadOnlyMounts: true, userNamespaces: true } },
    ];
    assert.equal(current.facts.version, '1.6.20~ds1', 'nobody knows yet');
    await reconnect();
    assert.equal(current.facts.version, '2.1.9');
    assert.equal(current.facts.features?.supplementalGroupsPolicy, true);
    assert.equal(current.facts.handlers[0]?.features?.userNamespaces, true);
    assert.deepEqual(changes, [current.facts]);
  });

  it('is no change when it is the same as before', async () => {
    const { runtime, changes, reconnect } = await setUp();
    runtime.facts.networkReady = false;
    await reconnect();
    assert.deepEqual(changes, []);
  });

  it('is waited for while it does not answer; what was known holds meanwhile', async () => {
    const { clock, runtime, current, reconnect } = await setUp();
    runtime.facts.runtimeVersion = '2.1.9';
    runtime.fail('Version', { error: { code: RuntimeErrorCode.Unavailable, text: 'gone again' }, times: 3 });
    await reconnect();
    assert.equal(current.facts.version, '1.6.20~ds1');
    await clock.advance(1000);
    await settle();
    assert.equal(current.facts.version, '2.1.9');
  });

  it('is reported when it speaks CRI no more, and listened to no longer than the agent lives', async () => {
    const { runtime, current, errors, reconnect, stop, listeners } = await setUp();
    runtime.facts.unimplemented.add('Version');
    await reconnect();
    assert.equal(errors.length, 1);
    assert.equal(current.facts.version, '1.6.20~ds1');
    stop.abort();
    assert.equal(listeners.size, 0);
  });
});
