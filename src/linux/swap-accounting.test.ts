import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { systemClock } from '../concurrency/clock.ts';
import { CgroupHierarchy } from './cgroupfs.ts';
import { hasSwapAccounting, readSwapEvidence } from './swap-accounting.ts';

const evidence = { ownCgroups: '0::/own.slice/agent\n', commandLine: 'root=/dev/vda ro', canSwap: true };

describe('swap accounting', () => {
  let tree: string;
  beforeEach(() => {
    tree = mkdtempSync(join(tmpdir(), 'swap-'));
  });
  afterEach(() => rmSync(tree, { recursive: true }));

  const cgroup = (name: string, ...files: string[]) => {
    mkdirSync(join(tree, name), { recursive: true });
    for (const file of files) writeFileSync(join(tree, name, file), 'max');
  };
  const v2 = (more: Partial<typeof evidence> = {}) =>
    hasSwapAccounting(new CgroupHierarchy({ mode: 'v2', unified: tree, trees: new Map() }, systemClock), {
      ...evidence,
      ...more,
    });
  const v1 = (trees: Map<string, string>) =>
    hasSwapAccounting(new CgroupHierarchy({ mode: 'v1', trees }, systemClock), evidence);

  it('is told on v2 by the cgroup of this process', async () => {
    cgroup('own.slice/agent', 'memory.max');
    cgroup('other.slice', 'memory.max', 'memory.swap.max');
    assert.equal(await v2(), false);
    cgroup('own.slice/agent', 'memory.swap.max');
    assert.equal(await v2(), true);
  });

  it('is told by another cgroup where the own one has no limits or cannot be seen', async () => {
    cgroup('a.slice');
    cgroup('b.slice', 'memory.max');
    for (const ownCgroups of ['0::/\n', '0::/../outside\n', '0::/own.slice/agent\n', '']) {
      assert.equal(await v2({ ownCgroups }), false, ownCgroups);
    }
    cgroup('b.slice', 'memory.swap.max');
    assert.equal(await v2({ ownCgroups: '0::/\n' }), true);
  });

  it('is guessed from the kernel where no cgroup has limits yet', async () => {
    assert.equal(await v2(), true);
    assert.equal(await v2({ canSwap: false }), false);
    assert.equal(await v2({ commandLine: 'ro swapaccount=0 quiet' }), false);
    assert.equal(await v2({ commandLine: 'ro swapaccount=01' }), true);
  });

  it('is told on v1 by the root cgroup', async () => {
    assert.equal(await v1(new Map()), false);
    assert.equal(await v1(new Map([['memory', tree]])), false);
    cgroup('.', 'memory.memsw.limit_in_bytes');
    assert.equal(await v1(new Map([['memory', tree]])), true);
  });

  it('reads what this kernel says', async () => {
    const found = await readSwapEvidence();
    assert.match(found.ownCgroups, /^\d+:/m);
    assert.notEqual(found.commandLine, '');
  });
});
