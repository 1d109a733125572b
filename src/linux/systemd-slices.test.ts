import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SystemdError, SystemdSlices } from './systemd-slices.ts';

function recorder(failures: (string | undefined)[] = []) {
  const calls: string[] = [];
  const slices = new SystemdSlices(async (args) => {
    calls.push(args.slice(4).join(' '));
    const failure = failures.shift();
    if (failure !== undefined) throw new Error(failure);
  });
  return { calls, slices };
}

const weight = { name: 'CPUWeight', type: 't', value: 39 } as const;

describe('systemd slices', () => {
  it('are started as transient units that want their parent', async () => {
    const { calls, slices } = recorder();
    await slices.ensure('kubepods-burstable.slice', [
      weight,
      { name: 'MemoryMax', type: 't', value: 'infinity' },
    ]);
    assert.deepEqual(calls, [
      'StartTransientUnit ssa(sv)a(sa(sv)) kubepods-burstable.slice replace 8 ' +
        'Description s slice kubepods-burstable.slice Wants as 1 kubepods.slice DefaultDependencies b false ' +
        'CPUAccounting b true MemoryAccounting b true TasksAccounting b true ' +
        'CPUWeight t 39 MemoryMax t 18446744073709551615 0',
    ]);
  });

  it('get their properties set when they are there already', async () => {
    const { calls, slices } = recorder(['Call failed: Unit kubepods.slice already exists.']);
    await slices.ensure('kubepods.slice', [weight]);
    assert.equal(calls[1], 'SetUnitProperties sba(sv) kubepods.slice true 1 CPUWeight t 39');
  });

  it('are stopped, also when they are gone; other failures are told', async () => {
    const { slices } = recorder([undefined, 'Unit a.slice not loaded.', 'Access denied', 'Access denied']);
    await slices.stop('a.slice');
    await slices.stop('a.slice');
    await assert.rejects(slices.stop('a.slice'), SystemdError);
    await assert.rejects(slices.ensure('a.slice', []), /systemd did not start a.slice: Access denied/);
  });
});
