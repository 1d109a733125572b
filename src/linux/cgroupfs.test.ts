import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { systemClock } from '../concurrency/clock.ts';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { CgroupHierarchy, CgroupRemovalError, CgroupWriteError } from './cgroupfs.ts';

describe('cgroups of this machine', () => {
  const root = `/kubelet-test-${process.pid}-linux`;
  let cgroups: CgroupHierarchy;

  before(async () => {
    cgroups = await CgroupHierarchy.open(systemClock);
  });
  after(async () => {
    await cgroups.remove(root);
  });

  it('are made with their parents, again without harm, and listed', async () => {
    await cgroups.create(`${root}/a/b`);
    await cgroups.create(`${root}/a/b`);
    await cgroups.create(`${root}/c`);
    assert.equal(await cgroups.exists(`${root}/a/b`), true);
    assert.equal(await cgroups.exists(`${root}/missing`), false);
    assert.deepEqual(await cgroups.children(root), ['a', 'c']);
    assert.deepEqual(await cgroups.children(`${root}/missing`), []);
  });

  it('take values, tell files that are missing, and say which value was refused', async () => {
    await cgroups.create(`${root}/values`);
    const limit = cgroups.version === 1 ? 'memory.limit_in_bytes' : 'memory.max';
    const skipped = await cgroups.write(`${root}/values`, [
      { file: limit, value: '67108864' },
      { file: 'pids.max', value: '50' },
      { file: 'nonsense.max', value: '1' },
      { file: 'memory.nonsense', value: '1' },
    ]);
    assert.deepEqual(skipped, ['nonsense.max', 'memory.nonsense']);
    assert.equal(await cgroups.read(`${root}/values`, limit), '67108864');
    assert.equal(await cgroups.read(`${root}/values`, 'pids.max'), '50');
    assert.equal(await cgroups.read(`${root}/values`, 'memory.nonsense'), undefined);
    assert.equal(await cgroups.read(`${root}/missing`, limit), undefined);
    await assert.rejects(cgroups.write(`${root}/values`, [{ file: 'pids.max', value: 'many' }]), (error) => {
      assert.ok(error instanceof CgroupWriteError);
      assert.match(error.message, /values did not take pids.max=many: EINVAL/);
      return true;
    });
    await assert.rejects(
      cgroups.write(`${root}/missing`, [{ file: 'pids.max', value: '1' }]),
      CgroupWriteError,
    );
  });

  it('are removed with everything that runs below them', async () => {
    await cgroups.create(`${root}/busy/inner`);
    // In a session of its own and deaf to SIGTERM, as a stubborn workload would be.
    // It starts its own child only when told, inside the cgroup.
    const child = spawn('sh', ['-c', "trap '' TERM; read -r line; sleep 1000 & wait"], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    await once(child, 'spawn');
    await cgroups.enter(`${root}/busy/inner`, child.pid!);
    child.stdin?.end('go\n');
    let processes: number[] = [];
    while (processes.length < 2) processes = await cgroups.processes(`${root}/busy`);
    assert.ok(processes.includes(child.pid!));
    const ended = once(child, 'exit');
    await cgroups.remove(`${root}/busy`);
    assert.deepEqual(await ended, [null, 'SIGKILL']);
    assert.deepEqual(
      await cgroups.children(root),
      (await cgroups.children(root)).filter((c) => c !== 'busy'),
    );
    await cgroups.remove(`${root}/busy`);
  });

  it('are removed although their processes are frozen', async () => {
    await cgroups.create(`${root}/frozen`);
    const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
    await once(child, 'spawn');
    await cgroups.enter(`${root}/frozen`, child.pid!);
    const freeze =
      cgroups.version === 1
        ? { file: 'freezer.state', value: 'FROZEN' }
        : { file: 'cgroup.freeze', value: '1' };
    await cgroups.write(`${root}/frozen`, [freeze]);
    await cgroups.remove(`${root}/frozen`);
    assert.deepEqual(await cgroups.processes(`${root}/frozen`), []);
  });

  it('are left alone when they are the root, this process runs there, or the name leads away', async () => {
    await assert.rejects(cgroups.remove('/'), CgroupRemovalError);
    await assert.rejects(cgroups.remove('relative'), TypeError);
    await assert.rejects(cgroups.create(`${root}/../escape`), TypeError);
  });
});

/** A v2 tree made of plain files: what is switched on and where, without a v2 kernel. */
describe('cgroups of a v2 tree', () => {
  let base: string;
  let cgroups: CgroupHierarchy;

  beforeEach(async () => {
    base = mkdtempSync(join(tmpdir(), 'cgroup2-'));
    await mkdir(join(base, 'kubepods/pod1'), { recursive: true });
    for (const directory of ['', 'kubepods', 'kubepods/pod1']) {
      await writeFile(join(base, directory, 'cgroup.controllers'), 'cpuset cpu memory pids misc\n');
      await writeFile(join(base, directory, 'cgroup.subtree_control'), '');
    }
    cgroups = new CgroupHierarchy({ mode: 'v2', unified: base, trees: new Map() }, systemClock);
  });
  afterEach(() => rmSync(base, { recursive: true }));

  it('switches controllers on for the children of every parent, not in the leaf', async () => {
    await cgroups.create('/kubepods/pod1');
    // A plain file keeps only the last of the writes; a kernel adds them up.
    assert.equal(await readFile(join(base, 'cgroup.subtree_control'), 'utf8'), '+pids');
    assert.equal(await readFile(join(base, 'kubepods/cgroup.subtree_control'), 'utf8'), '+pids');
    assert.equal(await readFile(join(base, 'kubepods/pod1/cgroup.subtree_control'), 'utf8'), '');
  });

  it('is left alone when this process runs below it', async () => {
    await writeFile(join(base, 'kubepods/pod1/cgroup.procs'), `${process.pid}\n`);
    await assert.rejects(cgroups.remove('/kubepods'), /was not removed: this very process runs in it/);
  });

  it('is given up after the deadline, naming the processes that stay', async () => {
    // 0 is how the kernel shows a process of an outer pid namespace: nobody here can end it.
    await writeFile(join(base, 'kubepods/pod1/cgroup.procs'), '0\n');
    const clock = new VirtualClock();
    const waiting = new CgroupHierarchy({ mode: 'v2', unified: base, trees: new Map() }, clock);
    const removal = assert.rejects(waiting.remove('/kubepods', { deadline: 50 }), (error) => {
      assert.ok(error instanceof CgroupRemovalError);
      assert.deepEqual(error.processes, [0]);
      assert.match(error.message, /processes 0 did not end within 50 ms after SIGKILL/);
      return true;
    });
    const progress = { done: false };
    const ended = removal.finally(() => {
      progress.done = true;
    });
    while (!progress.done) await clock.advance(10);
    await ended;
  });

  it('writes and reads every controller in the one tree', async () => {
    await writeFile(join(base, 'kubepods/cpu.weight'), '100\n');
    assert.deepEqual(await cgroups.write('/kubepods', [{ file: 'cpu.weight', value: '39' }]), []);
    assert.match((await cgroups.read('/kubepods', 'cpu.weight'))!, /^39/);
    assert.deepEqual(await cgroups.write('/kubepods', [{ file: 'hugetlb.2MB.max', value: '0' }]), [
      'hugetlb.2MB.max',
    ]);
    assert.deepEqual(await cgroups.controllers(), ['cpuset', 'cpu', 'memory', 'pids', 'misc']);
  });
});
