import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { prefersOpenMetrics, toOpenMetrics } from './open-metrics.ts';

describe('OpenMetrics', () => {
  it('keeps the name of every sample', () => {
    const text = [
      '# HELP requests_total How "many".',
      '# TYPE requests_total counter',
      'requests_total{code="200"} 3 1700000000500',
      '',
      '# HELP evictions Pods.',
      '# TYPE evictions counter',
      'evictions{signal="a b} 5"} 1',
      '# HELP took Time.',
      '# TYPE took histogram',
      'took_bucket{le="1"} 2',
      'took_bucket{le="+Inf"} 2',
      'took_sum 0.5',
      'took_count 2',
      '',
    ].join('\n');
    assert.deepEqual(toOpenMetrics(text).split('\n'), [
      '# HELP requests How \\"many\\".',
      '# TYPE requests counter',
      'requests_total{code="200"} 3 1700000000.5',
      '# HELP evictions Pods.',
      '# TYPE evictions unknown',
      'evictions{signal="a b} 5"} 1',
      '# HELP took Time.',
      '# TYPE took histogram',
      'took_bucket{le="1"} 2',
      'took_bucket{le="+Inf"} 2',
      'took_sum 0.5',
      'took_count 2',
      '# EOF',
      '',
    ]);
  });

  for (const [accept, wanted] of [
    [undefined, false],
    ['*/*', false],
    ['text/plain;version=0.0.4', false],
    ['application/openmetrics-text', true],
    ['application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.7', false],
    ['application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1', true],
    ['application/openmetrics-text;q=0', false],
  ] as const) {
    it(`is ${wanted ? '' : 'not '}what ${accept} asks for`, () =>
      assert.equal(prefersOpenMetrics(accept), wanted));
  }
});
