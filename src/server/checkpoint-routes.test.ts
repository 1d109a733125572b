import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, it } from 'node:test';
import { checkpointRoutes } from './checkpoint-routes.ts';
import { everybody, startWorld, type World } from './fixtures/node-server-world.ts';

let world: World;
let root: string;
let failure: Error | undefined;
const asked: object[] = [];

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'kubelet-ts-checkpoints-'));
  const routes = checkpointRoutes({
    pod: (namespace, name) =>
      namespace === 'shop' && name === 'web'
        ? {
            hasContainer: (container) => container !== 'other',
            running: (container) => (container === 'main' ? 'c1' : undefined),
          }
        : undefined,
    async checkpoint(request) {
      if (failure) throw failure;
      asked.push(request);
      await writeFile(request.location, 'archive');
    },
    directory: join(root, 'checkpoints'),
    now: () => Date.UTC(2026, 2, 1, 12, 30, 5, 678),
  });
  world = await startWorld({ routes, access: everybody });
});
after(async () => {
  await world[Symbol.asyncDispose]();
  await rm(root, { recursive: true });
});
beforeEach(() => {
  failure = undefined;
  asked.length = 0;
});

const post = (path: string) => world.ask(`/checkpoint/${path}`, { method: 'POST' });

it('a checkpoint goes to a directory of the node that nobody else reads', async () => {
  const location = join(root, 'checkpoints', 'checkpoint-web_shop-main-2026-03-01T12:30:05Z.tar');
  const { status, text, headers } = await post('shop/web/main?timeout=x&timeout=30');
  assert.deepEqual([status, headers['content-type']], [200, 'application/json']);
  assert.deepEqual(JSON.parse(text), { items: [location] });
  assert.deepEqual(asked, [{ containerId: 'c1', location, timeout: 30n }]);
  assert.deepEqual(await readdir(join(root, 'checkpoints')), [
    'checkpoint-web_shop-main-2026-03-01T12:30:05Z.tar',
  ]);
  assert.equal((await stat(join(root, 'checkpoints'))).mode & 0o777, 0o700);
});

it('what cannot be checkpointed is refused with the codes of a kubelet', async () => {
  const cases: [string, number, string][] = [
    ['shop/none/main', 404, 'pod does not exist'],
    ['shop/web/other', 404, 'container other does not exist'],
    ['shop/web/main?timeout=soon', 404, 'cannot parse value of timeout parameter'],
    ['shop/web/main?timeout=9223372036854775808', 404, 'cannot parse value of timeout parameter'],
    ['shop/web/ended', 500, 'checkpointing of shop/web/ended failed (container ended is not running)'],
  ];
  for (const [path, status, text] of cases) {
    const answer = await post(path);
    assert.deepEqual([answer.status, answer.text], [status, `${text}\n`], path);
  }
  assert.deepEqual(asked, []);
  failure = new Error('CheckpointContainer failed: unknown method (Unimplemented)');
  const answer = await post('shop/web/main');
  assert.deepEqual(
    [answer.status, answer.text],
    [
      500,
      'checkpointing of shop/web/main failed (CheckpointContainer failed: unknown method (Unimplemented))\n',
    ],
  );
  assert.equal((await world.ask('/checkpoint/shop/web/main')).status, 405);
});
