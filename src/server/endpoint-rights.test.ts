/** Every endpoint × {no credentials, wrong ones, right ones without the right, each right that is enough}. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { TestPair } from '../client/fixtures/test-certificates.ts';
import { examplePath, nodeEndpoints } from './fixtures/endpoint-facts.ts';
import { authorityNamed, startWorld, type World } from './fixtures/node-server-world.ts';
import type { NodeRoute } from './route.ts';
import { sendText } from './router.ts';

const everywhere: NodeRoute[] = [
  ...new Set(nodeEndpoints.map(({ path }) => path.replace(/\{\w+,[^}]*\}/, '{name}'))),
].map((path) => ({ path, handle: ({ response }) => sendText(response, 200, 'in') }));

describe('who may use which endpoint', () => {
  let world: World;
  let wrongPair: TestPair;
  let users = 0;
  before(async () => {
    world = await startWorld({ routes: everywhere });
    wrongPair = await (await authorityNamed('other')).issue({
      name: 'admin',
      organization: 'system:masters',
    });
    world.reviews.grants.add('admin * *');
  });
  after(() => world[Symbol.asyncDispose]());

  /** A token of a user nobody has asked about yet. */
  const newcomer = () => {
    const name = `user-${users++}`;
    world.reviews.tokens.set(name, { name, groups: [] });
    return name;
  };

  it('knows a table worth testing', () => assert.ok(nodeEndpoints.length >= 35));

  for (const { method, path, verb, subresources } of nodeEndpoints) {
    it(`${method} ${path}`, async () => {
      const { reviews } = world;
      const at = examplePath(path);
      assert.equal((await world.ask(at, { method })).status, 401);
      assert.equal((await world.ask(at, { method, token: 'wrong' })).status, 401);
      assert.equal((await world.ask(at, { method, pair: wrongPair })).status, 401);

      const forbidden = newcomer();
      reviews.asked.length = 0;
      const refused = await world.ask(at, { method, token: forbidden });
      assert.deepEqual(
        [refused.status, refused.text],
        [
          403,
          `Forbidden (user=${forbidden}, verb=${verb}, resource=nodes, subresource(s)=[${subresources.join(' ')}])`,
        ],
      );
      assert.deepEqual(reviews.asked, [
        `token ${forbidden}`,
        ...subresources.map((name) => `${forbidden} ${verb} ${name}`),
      ]);

      for (const subresource of subresources) {
        const allowed = newcomer();
        reviews.grants.add(`${allowed} ${verb} ${subresource}`);
        assert.equal((await world.ask(at, { method, token: allowed })).status, 200, subresource);
      }
    });
  }

  it('takes the right to everything for what it does not know, however it is spelled', async () => {
    const token = newcomer();
    for (const path of [
      '/',
      '/nothing',
      '/pods/../exec/a/b/c',
      '//pods',
      '/pods//',
      '/%2e%2e/pods',
      '/pods%00',
    ]) {
      const { status, text } = await world.ask(path, { token });
      assert.deepEqual([status, path, /subresource\(s\)=\[proxy\]/.test(text)], [403, path, true]);
    }
    const { text } = await world.ask('/pods', { method: 'OPTIONS', token });
    assert.match(text, /verb=, resource=nodes, subresource\(s\)=\[pods proxy\]/);
  });
});
