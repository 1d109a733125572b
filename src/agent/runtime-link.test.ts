import assert from 'node:assert/strict';
import { it } from 'node:test';
import { settle, VirtualClock } from '../concurrency/virtual-clock.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { RuntimeLink, type RuntimeLook } from './runtime-link.ts';

const condition = (type: string, status: boolean, message = '') => ({ type, status, reason: '', message });
const good = [condition('RuntimeReady', true), condition('NetworkReady', true)];

function start() {
  const clock = new VirtualClock();
  const looks: RuntimeLook[] = [];
  let answer = () => Promise.resolve({ status: { conditions: good }, info: {}, runtimeHandlers: [] });
  let asked = 0;
  let changes = 0;
  const link = new RuntimeLink({
    runtime: {
      status: async () => {
        asked++;
        return { ...(await answer()), features: undefined };
      },
    },
    clock,
    logger: silentLogger,
    onChange: () => changes++,
    onLook: (look) => looks.push(look),
  });
  return {
    clock,
    link,
    looks,
    asked: () => asked,
    changes: () => changes,
    answerWith: (next: typeof answer) => {
      answer = next;
    },
  };
}

it('what the runtime said when it was found counts at once, without asking it again', () => {
  const { link, looks, asked, changes } = start();
  assert.notEqual(link.networkProblem, undefined);
  link.seen(good);
  assert.deepEqual(looks, [{ answered: true, problem: undefined, networkProblem: undefined }]);
  assert.equal(link.networkProblem, undefined);
  assert.deepEqual([asked(), changes()], [0, 1]);
  link.seen([condition('RuntimeReady', true), condition('NetworkReady', false, 'no CNI')]);
  assert.match(link.networkProblem ?? '', /network not ready: NetworkReady=false.*no CNI/);
});

it('a runtime that is away leaves the network as it was, and is asked every second', async () => {
  const { clock, link, looks, asked, answerWith } = start();
  link.seen(good);
  answerWith(() => Promise.reject(new Error('connection refused')));
  const end = new AbortController();
  const running = link.run(end.signal);
  await settle();
  assert.deepEqual(looks.at(-1), { answered: false });
  assert.equal(link.networkProblem, undefined);
  await clock.advance(3000);
  assert.equal(asked(), 4);
  end.abort();
  await running;
});
