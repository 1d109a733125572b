import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ExpositionWriter, labelText, timestampEnd } from './exposition-writer.ts';

describe('writing metrics into a buffer', () => {
  it('writes families, labels, values and times, and grows as it must', () => {
    const writer = new ExpositionWriter(16);
    writer.family('a_total', 'counter', 'Counts.');
    writer.sample(labelText({ path: 'C:\\"x"\n', other: 'ü' }), 1.5, timestampEnd(1_700_000_000_123.7));
    writer.family('b', 'gauge', 'Is.');
    writer.sample('', Number.POSITIVE_INFINITY);
    writer.sample(Buffer.from('{x="1"}'), 1e21);
    const text =
      '# HELP a_total Counts.\n# TYPE a_total counter\n' +
      'a_total{path="C:\\\\\\"x\\"\\n",other="ü"} 1.5 1700000000123\n' +
      '# HELP b Is.\n# TYPE b gauge\nb +Inf\nb{x="1"} 1e+21\n';
    assert.equal(writer.take().toString(), text);
    writer.family('c', 'gauge', 'Other.');
    assert.equal(writer.take().toString(), '# HELP c Other.\n# TYPE c gauge\n');
  });
});
