import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { conformanceTitles, titleRules, titlesIn } from './titles.ts';

const tests = join(import.meta.dirname, '..');
const titles = conformanceTitles();

/** Files by the titles they state. */
function stated(): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const file of globSync('**/*.test.ts', { cwd: tests })) {
    if (file === 'conformance/titles.test.ts') continue;
    for (const title of titlesIn(readFileSync(join(tests, file), 'utf8'))) {
      found.set(title, [...(found.get(title) ?? []), file]);
    }
  }
  return found;
}

describe('conformance titles', () => {
  it('are each in exactly one class', () => {
    const wrong = titles.filter(({ rules }) => rules.length !== 1);
    assert.deepEqual(
      wrong.map(({ area, title, rules }) => `${area}: ${title}: ${rules.length} rules`),
      [],
    );
    assert.equal(new Set(titles.map(({ title }) => title)).size, titles.length);
  });

  it('have no rule that is about nothing, and none without a reason', () => {
    const idle = titleRules.filter((rule) => !titles.some(({ rules }) => rules.includes(rule)));
    assert.deepEqual(idle, []);
    for (const { class: is, why } of titleRules) assert.equal(is === 'covered', why === undefined);
  });

  it('are carried by exactly one test when they are covered, and by none otherwise', () => {
    const found = stated();
    const wrong = titles.flatMap(({ title, rules }) => {
      const files = found.get(title) ?? [];
      const wanted = rules[0]?.class === 'covered' ? 1 : 0;
      return files.length === wanted ? [] : [`${title}: in ${files.join(', ') || 'no file'}`];
    });
    assert.deepEqual(wrong, []);
  });

  it('are written in tests as they are known', () => {
    const known = new Set(titles.map(({ title }) => title));
    assert.deepEqual(
      [...stated()].filter(([title]) => !known.has(title)),
      [],
    );
  });
});
