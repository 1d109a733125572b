import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { podIdRange, type SubIdFiles } from './sub-ids.ts';

const rules = { maxPods: 110, idsPerPod: 65_536 };
const both = (text: string): SubIdFiles => ({ subuid: text, subgid: text });

suite('subordinate ids', () => {
  test('without entries there is a range for every pod above the ids of the node', () => {
    const range = { first: 65_536, count: 110 * 65_536 };
    assert.deepEqual(podIdRange({ subuid: undefined, subgid: undefined }, rules), range);
    assert.deepEqual(podIdRange(both('alice:65536:65536\n# kubelet:1:1\nnonsense\n'), rules), range);
    assert.deepEqual(podIdRange(both(''), { maxPods: 2, idsPerPod: 131_072 }), {
      first: 131_072,
      count: 262_144,
    });
  });

  test('the entry of the user kubelet, by name or by number', () => {
    const range = { first: 131_072, count: 7_208_960 };
    assert.deepEqual(podIdRange(both('root:65536:65536\nkubelet:131072:7208960\n'), rules), range);
    const passwd = 'root:x:0:0::/root:/bin/sh\nkubelet:x:998:998::/:/sbin/nologin\n';
    assert.deepEqual(podIdRange({ ...both('998:131072:7208960'), passwd }, rules), range);
    assert.equal(podIdRange(both('998:131072:7208960'), rules).first, 65_536);
  });

  test('a range pods cannot be put into is refused with the rule', () => {
    const refused: [SubIdFiles, RegExp][] = [
      [both('kubelet:65535:7208960'), /the first must be 65536 or above/],
      [both('kubelet:65537:7208960'), /the first must be a multiple of 65536/],
      [both('kubelet:65536:7208961'), /there must be a multiple of 65536/],
      [both('kubelet:65536:7143424'), /there must be 7208960, enough for 110 pods/],
      [both('kubelet:4294901760:7208960'), /ids end at 4294967295/],
      [both('kubelet:65536:7208960\nkubelet:7340032:7208960'), /has 2 ranges .* has 2; both must have one/],
      [{ subuid: 'kubelet:65536:7208960', subgid: '' }, /\/etc\/subgid has 0/],
      [
        { subuid: 'kubelet:65536:7208960', subgid: 'kubelet:131072:7208960' },
        /in \/etc\/subgid must be that in \/etc\/subuid/,
      ],
    ];
    for (const [files, message] of refused) {
      assert.throws(() => podIdRange(files, rules), { name: 'SubIdError', message });
    }
  });
});
