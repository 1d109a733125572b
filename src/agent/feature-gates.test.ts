/** Beside the agent, which hands gates to every room: what is asked for here is told to users elsewhere. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { EFFECTIVE_FIELDS, EFFECTIVE_GATES } from '../config/effects.ts';
import { FEATURE_GATES, type GateName } from '../config/feature-gates.ts';
import { listFields } from '../config/kubelet-configuration.ts';

/** Gates that the sources ask for by name, as `featureEnabled('X')`, `gates.enabled('X')` or `gate: 'X'`. */
function askedFor(): Set<string> {
  const sources = join(import.meta.dirname, '..');
  const found = new Set<string>();
  for (const name of readdirSync(sources, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts') || name.endsWith('.test.ts')) continue;
    // What the configuration says of its fields is judged by the fields.
    const pattern = name.startsWith('config/fields/')
      ? /$^/g
      : /(?:featureEnabled|gates\.enabled)\(\s*'(\w+)'|\bgate: '(\w+)'/g;
    for (const [, asked, ofOption] of readFileSync(join(sources, name), 'utf8').matchAll(pattern)) {
      found.add((asked ?? ofOption)!);
    }
  }
  return found;
}

/** Gates without which a field that has an effect is refused. */
function ofEffectiveFields(): string[] {
  const fields = listFields();
  return EFFECTIVE_FIELDS.map((path) => fields.get(path)?.gate).filter((gate) => gate !== undefined);
}

test('the gates that users are told to have an effect are those that the code asks for', () => {
  const inUse = new Set(['AllAlpha', 'AllBeta', ...askedFor(), ...ofEffectiveFields()]);
  const switchable = [...inUse].filter((name) => !FEATURE_GATES[name as GateName].locked);
  assert.deepEqual(
    [...EFFECTIVE_GATES].sort(),
    switchable.sort(),
    'EFFECTIVE_GATES in src/config/effects.ts must name the gates the code asks for; then run ' +
      'node scripts/generate-reference.ts',
  );
});
