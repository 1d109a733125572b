import assert from 'node:assert/strict';
import { it } from 'node:test';
import { PodModel } from './fixtures/pod-model.ts';
import { newestInstance, newestSandbox } from './instances.ts';

it('the later attempt is the newest, also when the clock was set back before it was made', () => {
  const model = new PodModel();
  model.settle();
  model.exit('web', 1);
  model.crashSandbox();
  model.now -= 24 * 3600 * 1000;
  model.settle();
  assert.equal(newestInstance(model.observed, 'web')?.attempt, 1);
  assert.equal(newestInstance(model.observed, 'web')?.state, 'Running');
  assert.equal(newestSandbox(model.observed)?.attempt, 1);
  assert.equal(newestSandbox(model.observed)?.state, 'Ready');
});
