import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { ProbeMemoryFile } from './probe-memory.ts';

async function world(t: TestContext) {
  const rootDirectory = await mkdtemp(join(tmpdir(), 'probe-memory-'));
  t.after(() => rm(rootDirectory, { recursive: true }));
  const clock = new VirtualClock();
  const warnings: unknown[] = [];
  const logger = { ...silentLogger, warn: (_message: string, fields?: object) => void warnings.push(fields) };
  const open = async () => {
    const memory = new ProbeMemoryFile({ rootDirectory, clock, logger });
    await memory.load();
    return memory;
  };
  return { clock, warnings, open, file: join(rootDirectory, 'kubelet-ts', 'probes.json'), rootDirectory };
}

describe('what is remembered of probes', () => {
  it('survives the agent', async (t) => {
    const { open } = await world(t);
    const memory = await open();
    memory.remember('a', { started: true, ready: true });
    memory.remember('b', { started: true, ready: false });
    memory.remember('c', { started: false, ready: false });
    memory.remember('d', { started: true, ready: true });
    memory.forget('d');
    await memory.flush();
    const next = await open();
    assert.deepEqual(
      ['a', 'b', 'c', 'd'].map((id) => next.recall(id)),
      [{ started: true, ready: true }, { started: true, ready: false }, undefined, undefined],
    );
  });

  it('is written once for changes that come together, and not at all without a change', async (t) => {
    const { open, clock, file } = await world(t);
    const memory = await open();
    for (let index = 0; index < 100; index++) memory.remember(`c${index}`, { started: true, ready: true });
    assert.equal(clock.nextTimer(), clock.now() + 500);
    await clock.advance(500);
    await memory.flush();
    assert.match(await readFile(file, 'utf8'), /"c99"/);
    await rm(file);
    memory.remember('c1', { started: true, ready: true });
    memory.forget('unknown');
    assert.equal(clock.nextTimer(), undefined);
    await memory.flush();
    await assert.rejects(readFile(file));
  });

  it('keeps only containers that are still there', async (t) => {
    const { open } = await world(t);
    const memory = await open();
    for (const id of ['a', 'b']) memory.remember(id, { started: true, ready: true });
    memory.retain(['b', 'z']);
    await memory.flush();
    const next = await open();
    assert.deepEqual([next.recall('a'), next.recall('b')?.ready], [undefined, true]);
  });

  it('is set aside and told of when it is damaged', async (t) => {
    const { open, file, warnings, rootDirectory } = await world(t);
    const memory = await open();
    memory.remember('a', { started: true, ready: true });
    await memory.flush();
    await writeFile(file, (await readFile(file, 'utf8')).replace('"ready":true', '"ready":false'));
    const next = await open();
    assert.equal(next.recall('a'), undefined);
    assert.equal(warnings.length, 1);
    assert.match((await readdir(join(rootDirectory, 'kubelet-ts'))).join(' '), /probes\.json\.corrupt-/);
  });

  it('is no more than that when it cannot be written', async (t) => {
    const { clock, rootDirectory } = await world(t);
    await writeFile(join(rootDirectory, 'kubelet-ts'), 'in the way');
    const errors: string[] = [];
    const logger = { ...silentLogger, error: (message: string) => void errors.push(message) };
    const memory = new ProbeMemoryFile({ rootDirectory, clock, logger });
    memory.remember('a', { started: true, ready: true });
    await memory.flush();
    await memory.flush();
    assert.equal(errors.length, 1);
    await rm(join(rootDirectory, 'kubelet-ts'));
    await memory.flush();
    const next = new ProbeMemoryFile({ rootDirectory, clock, logger });
    await next.load();
    assert.equal(next.recall('a')?.ready, true);
  });
});
