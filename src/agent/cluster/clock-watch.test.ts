import assert from 'node:assert/strict';
import { it } from 'node:test';
import { VirtualClock } from '../../concurrency/virtual-clock.ts';
import { silentLogger } from '../../telemetry/logger.ts';
import { ClockWatch } from './clock-watch.ts';

it('a clock that is off is said once, with the remedy, and once more when it is right again', () => {
  const clock = new VirtualClock();
  const said: string[] = [];
  const watch = new ClockWatch({
    clock,
    logger: {
      ...silentLogger,
      warn: (_message, fields) => said.push(String(fields?.['problem'])),
      info: (message) => said.push(message),
    },
  });
  const answers = (...aheadMs: number[]) => {
    said.length = 0;
    for (const ms of aheadMs) watch.seen(clock.now() - ms);
    return said;
  };
  // An answer that was long under way, and a date in whole seconds.
  assert.deepEqual(answers(0, 29_000, -29_000), []);
  assert.deepEqual(answers(90_000, 91_000, 400_000), [
    'the clock of this machine: It is 90 s ahead of that of the API server, so certificates and tokens may be refused. Set it by NTP (timedatectl set-ntp true).',
  ]);
  assert.deepEqual(answers(0, 1000), ['The clock of this machine agrees with that of the API server again']);
  assert.match(answers(-60_000).join(), /60 s behind that of the API server/);
});
