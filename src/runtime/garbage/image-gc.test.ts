import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  bytesToFree,
  collectsImages,
  expiredImages,
  type ImageOnNode,
  type ImageUses,
  noteUses,
  removableImages,
} from './image-gc.ts';

const minute = 60_000;
const image = (id: string, extra: Partial<ImageOnNode> = {}): ImageOnNode => ({
  id,
  names: [`r.io/${id}:1`],
  size: 100,
  pinned: false,
  ...extra,
});
const ids = (images: readonly ImageOnNode[]) => images.map(({ id }) => id);

describe('when the disk is too full', () => {
  const rules = { highPercent: 85, lowPercent: 80, minAgeMs: 0, maxAgeMs: 0 };
  for (const [available, wanted] of [
    [100, 100],
    [150, 50],
    [159, 41],
    [160, 0],
    [200, 0],
    [0, 200],
    [2000, 0],
  ] as const) {
    it(`with ${available} of 1000 bytes left, ${wanted} have to go`, () => {
      assert.equal(bytesToFree({ capacity: 1000, available }, rules), wanted);
    });
  }

  it('a threshold of 100 never removes for space', () => {
    const never = { ...rules, highPercent: 100 };
    assert.equal(bytesToFree({ capacity: 1000, available: 0 }, never), 0);
    assert.equal(collectsImages(never), false);
    assert.ok(collectsImages({ ...never, maxAgeMs: 1 }));
    assert.ok(collectsImages(rules));
  });
});

describe('which images may go', () => {
  const now = 100 * minute;
  const needed = new Set(['used', 'r.io/by-tag:1']);
  const uses: ImageUses = {
    used: { firstSeen: 0 },
    'by-tag': { firstSeen: 0 },
    pinned: { firstSeen: 0 },
    young: { firstSeen: now - minute },
    'just-used': { firstSeen: 0, lastUsed: now - minute },
    recent: { firstSeen: 0, lastUsed: now - 3 * minute },
    long: { firstSeen: 0, lastUsed: now - 30 * minute },
    'never-2': { firstSeen: now - 10 * minute },
    'never-1': { firstSeen: now - 20 * minute },
  };
  const images = Object.keys(uses).map((id) => image(id, { pinned: id === 'pinned' }));
  const removable = removableImages(images, uses, needed, { minAgeMs: 2 * minute, now });

  it('neither used nor pinned nor young ones; the least recently used first', () => {
    assert.deepEqual(ids(removable), ['never-1', 'never-2', 'long', 'recent']);
  });

  it('those unused for too long have expired', () => {
    const expired = (maxAgeMs: number) => ids(expiredImages(removable, uses, { maxAgeMs, now }));
    assert.deepEqual(expired(0), []);
    assert.deepEqual(expired(15 * minute), ['never-1', 'long']);
  });

  it('an image nothing is known of is young', () => {
    assert.deepEqual(removableImages([image('new')], {}, new Set(), { minAgeMs: 1, now }), []);
  });

  it('nothing that is needed goes, ever', () => {
    const some = fc.record({
      id: fc.constantFrom('a', 'b', 'c', 'd'),
      pinned: fc.boolean(),
      names: fc.array(fc.constantFrom('x', 'y', 'z'), { maxLength: 2 }),
      size: fc.nat(),
    });
    fc.assert(
      fc.property(
        fc.uniqueArray(some, { selector: ({ id }) => id }),
        fc.array(fc.constantFrom('a', 'b', 'x', 'y')),
        fc.nat(1000),
        (list, references, at) => {
          const refs = new Set<string>(references);
          const noted = noteUses({}, list, refs, 0);
          const going = removableImages(list, noted, refs, { minAgeMs: 0, now: at });
          assert.ok(
            going.every(
              ({ id, names, pinned }) => !pinned && !refs.has(id) && !names.some((n) => refs.has(n)),
            ),
          );
        },
      ),
    );
  });
});

describe('what is remembered of images', () => {
  it('first seen, last used, forgotten with the image', () => {
    const first = noteUses({}, [image('a'), image('b')], new Set(['a']), 10);
    assert.deepEqual(first, { a: { firstSeen: 10, lastUsed: 10 }, b: { firstSeen: 10 } });
    const second = noteUses(first, [image('a'), image('c')], new Set(['r.io/c:1']), 20);
    assert.deepEqual(second, { a: { firstSeen: 10, lastUsed: 10 }, c: { firstSeen: 20, lastUsed: 20 } });
  });

  it('times of a clock that was ahead come back to now', () => {
    const ahead = { a: { firstSeen: 900, lastUsed: 900 } };
    assert.deepEqual(noteUses(ahead, [image('a')], new Set(), 20), { a: { firstSeen: 20, lastUsed: 20 } });
  });
});
