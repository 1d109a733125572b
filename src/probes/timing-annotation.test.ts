import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { probedPod } from './fixtures/probed-pod.ts';
import { probeTiming } from './probe-timing.ts';
import { readTimingAnnotation, timingAnnotation } from './timing-annotation.ts';

const exec = { command: ['true'] };
const read = (text: string | undefined) =>
  readTimingAnnotation(
    probedPod({
      annotations: text === undefined ? {} : { [timingAnnotation]: text },
      containers: [{ name: 'web', readinessProbe: { exec, periodSeconds: 5 } }],
    }),
  );

describe('times below a second', () => {
  it('come from the annotation and leave alone what it does not name', () => {
    const { of, problems } = read('{"web":{"readiness":{"periodMilliseconds":200}}}');
    assert.deepEqual(problems, []);
    assert.deepEqual(probeTiming({ exec, timeoutSeconds: 2 }, of('web', 'readiness')), {
      initialDelayMs: 0,
      periodMs: 200,
      timeoutMs: 2000,
      successThreshold: 1,
      failureThreshold: 3,
    });
    assert.equal(of('web', 'liveness'), undefined);
  });

  it('can be no delay at all', () => {
    const { of } = read('{"web":{"readiness":{"initialDelayMilliseconds":0,"timeoutMilliseconds":50}}}');
    const timing = probeTiming({ initialDelaySeconds: 7 }, of('web', 'readiness'));
    assert.deepEqual([timing.initialDelayMs, timing.timeoutMs], [0, 50]);
  });

  it('are as in the Pod without it', () => {
    assert.deepEqual(read(undefined).problems, []);
  });

  const wrong: readonly (readonly [string, RegExp])[] = [
    ['{"web":', /^it is not JSON: /],
    ['[]', /^the annotation: must be an object$/],
    ['{"web":1}', /^"web": must be an object$/],
    ['{"db":{"readiness":{}}}', /^"db": the pod has no container of this name$/],
    ['{"web":{"ready":{}}}', /^"web"\."ready": must be one of startup, liveness, readiness$/],
    ['{"web":{"liveness":{}}}', /^"web"\."liveness": the container has no such probe$/],
    ['{"web":{"readiness":{"period":1}}}', /^"web"\."readiness"\."period": must be one of periodMilli/],
    [
      '{"web":{"readiness":{"periodMilliseconds":9}}}',
      /"periodMilliseconds": must be a whole number from 10 to/,
    ],
    [
      '{"web":{"readiness":{"timeoutMilliseconds":0}}}',
      /"timeoutMilliseconds": must be a whole number from 1 to/,
    ],
    ['{"web":{"readiness":{"periodMilliseconds":"200"}}}', /must be a whole number/],
    ['{"web":{"readiness":{"periodMilliseconds":20.5}}}', /must be a whole number/],
    ['{"__proto__":{"readiness":{}}}', /^"__proto__": the pod has no container/],
  ];
  for (const [text, problem] of wrong) {
    it(`names what is wrong in ${text}`, () => {
      const { problems, of } = read(text);
      assert.match(problems[0] ?? '', problem);
      assert.equal(problems.length, 1);
      assert.deepEqual(of('web', 'readiness') ?? {}, {});
    });
  }

  it('count where they are right beside what is wrong', () => {
    const { of, problems } = read(
      '{"web":{"readiness":{"periodMilliseconds":100,"timeoutMilliseconds":-1}}}',
    );
    assert.equal(problems.length, 1);
    assert.deepEqual(of('web', 'readiness'), { periodMilliseconds: 100 });
  });

  it('survive any text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), (text) => void read(text).of('web', 'readiness')),
    );
  });
});
