import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { settle, VirtualClock } from '../../concurrency/virtual-clock.ts';
import { Image, ImageSpec } from '../generated/cri.ts';
import type { PullCredential } from './image-access.ts';
import { type ImageAccess, ImagePulls, type ImagePullsOptions } from './image-pulls.ts';

const nothing = new Uint8Array();

function scene(options: Partial<ImagePullsOptions> = {}) {
  const clock = new VirtualClock();
  const asked: string[] = [];
  const ends: { readonly come: () => void; readonly fail: (error: Error) => void }[] = [];
  const images: ImagePullsOptions['images'] = {
    imageStatus: async ({ image }) => ({
      image: { ...Image.decode(nothing), id: `id of ${image?.image}`, size: 1n },
      info: {},
    }),
    pullImage: ({ image, auth }, call) => {
      asked.push([image?.image, auth?.username].filter(Boolean).join(' as '));
      return new Promise((resolve, fail) => {
        ends.push({ come: () => resolve({ imageRef: `ref of ${image?.image}` }), fail });
        call?.signal?.addEventListener('abort', () => fail(call.signal?.reason));
      });
    },
  };
  const pulls = new ImagePulls({ images, clock, ...options });
  const pull = (image: string, { credentials = [], signal = never }: Partial<Wish> = {}) =>
    pulls.pull(
      {
        spec: { ...ImageSpec.decode(nothing), image, userSpecifiedImage: image },
        sandboxConfig: undefined,
        credentials,
      },
      signal,
    );
  return { clock, asked, ends, pull };
}

interface Wish {
  readonly credentials: readonly PullCredential[];
  readonly signal: AbortSignal;
}

const never = new AbortController().signal;
const credential = (username: string) =>
  ({ credential: { username }, hash: `hash of ${username}` }) as unknown as PullCredential;

describe('pulls', () => {
  it('are shared by who wants the same with the same credentials, and by nobody else', async () => {
    const { asked, ends, pull } = scene();
    const [first, second] = [pull('a'), pull('a')];
    const other = pull('a', { credentials: [credential('u')] });
    await settle();
    assert.deepEqual(asked, ['a', 'a as u']);
    for (const { come } of ends) come();
    assert.equal((await first).imageRef, 'ref of a');
    assert.equal(await second, await first);
    assert.equal((await other).credential?.credential.username, 'u');
  });

  it('go on as long as one waits for them', async () => {
    const { ends, pull } = scene();
    const [first, second] = [new AbortController(), new AbortController()];
    const given = pull('a', { signal: first.signal });
    const kept = pull('a', { signal: second.signal });
    await settle();
    first.abort(new Error('the pod has gone'));
    await assert.rejects(given, /the pod has gone/);
    ends[0]!.come();
    assert.equal((await kept).image?.id, 'id of ref of a');
  });

  it('try credentials one after another, and tell all that was said when none opens the image', async () => {
    const { asked, ends, pull } = scene();
    const outcome = pull('a', { credentials: [credential('u'), credential('v')] });
    const refused = assert.rejects(outcome, (error: AggregateError) => error.errors.length === 2);
    await settle();
    ends[0]!.fail(new Error('no, u'));
    await settle();
    ends[1]!.fail(new Error('no, v'));
    await refused;
    assert.deepEqual(asked, ['a as u', 'a as v']);
  });

  it('wait for their turn above the rate', async () => {
    const { asked, clock, pull } = scene({ rate: { perSecond: 1, burst: 1 } });
    const controller = new AbortController();
    const all = ['a', 'b'].map((image) => pull(image, { signal: controller.signal }));
    await settle();
    assert.deepEqual(asked, ['a']);
    await clock.advance(1000);
    assert.deepEqual(asked, ['a', 'b']);
    controller.abort();
    assert.equal((await Promise.allSettled(all)).length, 2);
  });

  it('do not begin without their note on disk', async () => {
    const access = {
      began: () => Promise.reject(new Error('no space left')),
    } as unknown as ImageAccess;
    const { asked, pull } = scene({ access });
    await assert.rejects(
      pull('a'),
      /Failed to record image pull intent for container image "a": no space left/,
    );
    assert.deepEqual(asked, []);
  });
});
