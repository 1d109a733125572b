import assert from 'node:assert/strict';
import { it } from 'node:test';
import { podAnnotations } from '../../kubernetes/pod-identity.ts';
import type { Pod } from '../../kubernetes/types.ts';
import type { ObservedPod } from '../../runtime/observed-pod.ts';
import { rememberedPods } from './remembered-pods.ts';

const record = (uid: string, source: string) => ({
  pod: {
    metadata: {
      name: uid,
      namespace: 'default',
      uid,
      annotations: { [podAnnotations.configSource]: source },
    },
  } as unknown as Pod,
  startTime: 0,
});

it('pods of the API server that the runtime still has go on; static ones have their source', () => {
  const records = [record('runs', 'api'), record('gone', 'api'), record('fixed', 'file')];
  const observe = (uid: string) =>
    ({ sandboxes: [{ state: uid === 'gone' ? 'NotReady' : 'Ready' }] }) as unknown as ObservedPod;
  assert.deepEqual(
    rememberedPods(records, observe).map(({ metadata }) => metadata.uid),
    ['runs'],
  );
});
