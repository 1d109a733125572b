import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EarlySource } from './early-source.ts';
import type { PodSource, SourceUpdate } from './pod-source.ts';

const update = (complete: boolean): SourceUpdate => ({ source: 'file', pods: [], errors: [], complete });

/** A source that says what a test tells it to. */
function scripted() {
  const end = Promise.withResolvers<void>();
  let tell: (update: SourceUpdate) => void = () => assert.fail('it does not run');
  const source: PodSource = {
    name: 'file',
    run: (listener) => {
      tell = listener;
      return end.promise;
    },
  };
  return { source, end, tell: (news: SourceUpdate) => tell(news) };
}

describe('a source that begins early', () => {
  it('keeps the latest word until somebody listens, then passes everything on', async () => {
    const { source, tell, end } = scripted();
    const early = new EarlySource(source, new AbortController().signal);
    tell(update(false));
    tell(update(true));
    const heard: SourceUpdate[] = [];
    const running = early.run((news) => heard.push(news));
    assert.deepEqual(heard, [update(true)]);
    tell(update(false));
    assert.deepEqual(heard, [update(true), update(false)]);
    end.resolve();
    await running;
  });

  it('that has said nothing says nothing', () => {
    const { source } = scripted();
    void new EarlySource(source, new AbortController().signal).run(() => assert.fail('nothing was told'));
  });

  it('fails for whoever runs it, also when it broke before', async () => {
    const { source, end } = scripted();
    const early = new EarlySource(source, new AbortController().signal);
    end.reject(new Error('inotify is gone'));
    await new Promise((resolve) => setImmediate(resolve));
    await assert.rejects(
      early.run(() => {}),
      /inotify is gone/,
    );
  });
});
