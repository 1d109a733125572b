import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import fc from 'fast-check';
import { silentLogger } from '../../telemetry/logger.ts';
import { UserNamespaces } from './user-namespaces.ts';

const base = mkdtempSync(join(tmpdir(), 'kubelet-ts-userns-'));
after(() => rmSync(base, { recursive: true, force: true }));
let roots = 0;
const newRoot = () => join(base, `${roots++}`);

const unit = 65_536;

async function start(root: string, given: { pods?: number; idsPerPod?: number; errors?: string[] } = {}) {
  const { pods = 4, idsPerPod = unit, errors = [] } = given;
  const namespaces = new UserNamespaces({
    rootDirectory: root,
    available: { first: unit, count: unit * pods },
    idsPerPod,
    logger: {
      ...silentLogger,
      error: (message, _, fields) => errors.push(`${message} ${String(fields?.['podUID'])}`),
    },
  });
  await namespaces.recover();
  return namespaces;
}

suite('user namespaces of pods', () => {
  test('a pod keeps its range, others get others, and the file tells', async () => {
    const root = newRoot();
    const namespaces = await start(root);
    const [a, b, again] = await Promise.all(['a', 'b', 'a'].map((uid) => namespaces.allocate(uid)));
    assert.deepEqual(a, { hostId: unit, length: unit });
    assert.deepEqual(b, { hostId: 2 * unit, length: unit });
    assert.deepEqual(again, a);
    const file = join(root, 'pods', 'a', 'userns');
    const mapping = [{ hostId: unit, containerId: 0, length: unit }];
    assert.deepEqual(JSON.parse(await readFile(file, 'utf8')), {
      uidMappings: mapping,
      gidMappings: mapping,
    });
    assert.equal((await stat(file)).mode & 0o777, 0o644);
  });

  test('a new agent knows the ranges from the disk', async () => {
    const root = newRoot();
    const before = await start(root);
    await before.allocate('a');
    const b = await before.allocate('b');
    await before.release('a');
    const namespaces = await start(root);
    assert.deepEqual(await namespaces.allocate('b'), b);
    assert.deepEqual(await namespaces.allocate('c'), { hostId: unit, length: unit });
    assert.deepEqual(await namespaces.allocate('d'), { hostId: 3 * unit, length: unit });
  });

  test('when all are taken the next pod is told, and waits for one to go', async () => {
    const namespaces = await start(newRoot(), { pods: 1 });
    const a = await namespaces.allocate('a');
    await assert.rejects(namespaces.allocate('b'), {
      name: 'UserNamespaceError',
      message: /no 65536 user ids are left for the pod: 1 pods have ranges in 65536-131071; give the user/,
    });
    await namespaces.release('a');
    assert.deepEqual(await namespaces.allocate('b'), a);
  });

  test('releasing twice, and what never had a range, changes nothing', async () => {
    const root = newRoot();
    const namespaces = await start(root);
    await namespaces.allocate('a');
    await namespaces.release('a');
    await namespaces.release('a');
    await namespaces.release('never');
    assert.deepEqual(await readdir(join(root, 'pods', 'a')), []);
  });

  test('what could not be written is not kept', async () => {
    const root = newRoot();
    await mkdir(root, { recursive: true });
    await writeFile(join(root, 'pods'), 'in the way');
    const namespaces = new UserNamespaces({
      rootDirectory: root,
      available: { first: unit, count: unit },
      idsPerPod: unit,
      logger: silentLogger,
    });
    await assert.rejects(namespaces.allocate('a'), { code: 'ENOTDIR' });
    await rm(join(root, 'pods'));
    assert.deepEqual(await namespaces.allocate('b'), { hostId: unit, length: unit });
  });

  test('another size than before never overlaps what is taken', async () => {
    const root = newRoot();
    await (await start(root)).allocate('small');
    const namespaces = await start(root, { pods: 8, idsPerPod: 2 * unit });
    assert.deepEqual(await namespaces.allocate('small'), { hostId: unit, length: unit });
    assert.deepEqual(await namespaces.allocate('large'), { hostId: 2 * unit, length: 2 * unit });
  });

  const one = (hostId: unknown, length: unknown, containerId: unknown = 0) => [
    { hostId, containerId, length },
  ];
  const damaged: [name: string, text: string][] = [
    ['no JSON', '{"uidMappings":'],
    ['null', 'null'],
    ['an empty list', JSON.stringify({ uidMappings: [], gidMappings: [] })],
    ['two kinds of ids', JSON.stringify({ uidMappings: one(unit, unit), gidMappings: one(2 * unit, unit) })],
    ['no groups', JSON.stringify({ uidMappings: one(unit, unit) })],
    ['a text', JSON.stringify({ uidMappings: one('0', unit), gidMappings: one('0', unit) })],
    ['no length', JSON.stringify({ uidMappings: one(unit, 0), gidMappings: one(unit, 0) })],
    ['another start', JSON.stringify({ uidMappings: one(unit, 1, 5), gidMappings: one(unit, 1, 5) })],
  ];
  for (const [name, text] of damaged) {
    test(`a file with ${name} is named, and its pod refused until it is made anew`, async () => {
      const root = newRoot();
      await mkdir(join(root, 'pods', 'a'), { recursive: true });
      await writeFile(join(root, 'pods', 'a', 'userns'), text);
      const errors: string[] = [];
      const namespaces = await start(root, { errors });
      assert.deepEqual(errors, ['The user ids of a pod are not known; it gets no new container a']);
      await assert.rejects(namespaces.allocate('a'), { message: /delete the pod and make it anew$/ });
      await namespaces.release('a');
      assert.deepEqual(await namespaces.allocate('a'), { hostId: unit, length: unit });
    });
  }

  test('a uid that is no name of a directory never leaves the pods', async () => {
    const namespaces = await start(newRoot());
    for (const uid of ['', '.', '..', 'a/b', 'a\0'])
      await assert.rejects(namespaces.allocate(uid), TypeError);
  });

  test('whatever comes and goes, no two pods ever share an id', async () => {
    const step = fc.record({
      what: fc.constantFrom('allocate', 'release', 'restart'),
      uid: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
      idsPerPod: fc.constantFrom(unit, 2 * unit),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
        const root = newRoot();
        let namespaces = await start(root, { pods: 8 });
        const held = new Map<string, { hostId: number; length: number }>();
        for (const { what, uid, idsPerPod } of steps) {
          if (what === 'restart') namespaces = await start(root, { pods: 8, idsPerPod });
          else if (what === 'release') {
            await namespaces.release(uid);
            held.delete(uid);
          } else {
            const range = await namespaces.allocate(uid).catch(() => undefined);
            if (range && held.has(uid)) assert.deepEqual(range, held.get(uid));
            if (range) held.set(uid, range);
          }
          const ranges = [...held.values()].sort((a, b) => a.hostId - b.hostId);
          ranges.reduce((end, { hostId, length }) => {
            assert.ok(hostId >= end && hostId % unit === 0);
            return hostId + length;
          }, unit);
        }
      }),
      { numRuns: 40 },
    );
  });
});
