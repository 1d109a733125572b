import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { type Logger, silentLogger } from '../telemetry/logger.ts';
import { LastGoodManifests } from './last-good-manifests.ts';

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'last-good-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const open = async (directory: string, log: Logger = silentLogger) => {
  const kept = new LastGoodManifests({ directory, clock: new VirtualClock(), log });
  await kept.load();
  return kept;
};

describe('last good manifests', () => {
  it('are there after a restart, the newest text of each, readable by nobody else', async (t) => {
    const directory = join(folder(t), 'made');
    const kept = await open(directory);
    kept.keep('/m/a', 'one');
    kept.keep('/m/a', 'two');
    kept.keep('/m/b', 'three');
    kept.keep('/m/c', 'four');
    kept.forget('/m/c');
    await kept.flush();
    const again = await open(directory);
    assert.deepEqual([...again.origins()].sort(), ['/m/a', '/m/b']);
    assert.equal(again.get('/m/a'), 'two');
    for (const name of readdirSync(directory)) assert.equal(statSync(join(directory, name)).mode & 0o077, 0);
  });

  it('that are damaged are set aside and reported, the others are used', async (t) => {
    const directory = folder(t);
    const kept = await open(directory);
    kept.keep('/m/a', 'one');
    await kept.flush();
    const [name = ''] = readdirSync(directory);
    truncateSync(join(directory, name), 20);
    writeFileSync(join(directory, 'x.json'), 'rubbish');
    kept.keep('/m/b', 'two');
    await kept.flush();
    const warnings: string[] = [];
    const again = await open(directory, { ...silentLogger, warn: (message) => warnings.push(message) });
    assert.deepEqual([...again.origins()], ['/m/b']);
    assert.equal(warnings.length, 2);
    assert.equal(readdirSync(directory).filter((file) => file.endsWith('.json')).length, 1);
  });

  it('that cannot be written are reported once and stay in memory', async (t) => {
    const directory = join(folder(t), 'file');
    writeFileSync(directory, '');
    const errors: string[] = [];
    const kept = await open(directory, { ...silentLogger, error: (message) => errors.push(message) });
    kept.keep('/m/a', 'one');
    kept.keep('/m/b', 'two');
    await kept.flush();
    assert.equal(kept.get('/m/b'), 'two');
    assert.equal(errors.length, 1);
  });
});
