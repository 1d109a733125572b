import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { sleep } from '../../concurrency/clock.ts';
import { VirtualClock } from '../../concurrency/virtual-clock.ts';
import type { Image, PullImageRequest } from '../generated/cri.ts';
import { RuntimeCallError, RuntimeErrorCode } from '../runtime-call-error.ts';
import type { PullCredential } from './image-access.ts';
import { ImagePuller, type ImagePullerOptions, type ImageRequest } from './image-puller.ts';
import type { ImageAccess, ImageService } from './image-pulls.ts';
import { pullDurationMetric } from './pull-duration-metric.ts';
import { type PullProgress, progressMessage } from './pull-progress.ts';

const refusal = (detail: string) =>
  new RuntimeCallError({ call: 'PullImage', object: 'image x', code: RuntimeErrorCode.Unknown, detail });

const auth = (username: string): PullCredential => ({
  credential: {
    username,
    password: 'p',
    auth: '',
    serverAddress: '',
    identityToken: '',
    registryToken: '',
  },
  origin: { kind: 'secret', uid: `u-${username}`, namespace: 'ns', name: username },
  hash: username,
});
const auths =
  (...usernames: string[]) =>
  async () =>
    usernames.map(auth);

/** Images kept in a set; a pull takes a second of virtual time. */
class FakeImages implements ImageService {
  readonly clock: VirtualClock;
  readonly present = new Set<string>();
  readonly pulls: PullImageRequest[] = [];
  inspections = 0;
  atOnce = 0;
  mostAtOnce = 0;
  pullMs = 1000;
  refuse: ((request: PullImageRequest) => Error | undefined) | undefined;
  inspectionError: Error | undefined;
  user: Pick<Image, 'uid' | 'username'> = { uid: { value: 7n }, username: '' };

  constructor(clock: VirtualClock) {
    this.clock = clock;
  }

  async imageStatus(request: Parameters<ImageService['imageStatus']>[0]) {
    this.inspections++;
    if (this.inspectionError) throw this.inspectionError;
    const name = request.image?.image ?? '';
    const known = this.present.has(name) || name.startsWith('id-of-');
    return { image: known ? this.#image(name) : undefined, info: {} };
  }

  async pullImage(request: PullImageRequest, options?: { signal?: AbortSignal }) {
    this.pulls.push(request);
    this.atOnce++;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.atOnce);
    try {
      await sleep(this.clock, this.pullMs, options?.signal);
    } finally {
      this.atOnce--;
    }
    const error = this.refuse?.(request);
    if (error) throw error;
    const name = request.image?.image ?? '';
    this.present.add(name);
    return { imageRef: `id-of-${name}` };
  }

  #image(name: string): Image {
    const id = name.startsWith('id-of-') ? name : `id-of-${name}`;
    return { id, repoTags: [], repoDigests: [], size: 1234n, spec: undefined, pinned: false, ...this.user };
  }
}

function setup(options: Partial<ImagePullerOptions> = {}) {
  const clock = new VirtualClock(0);
  const images = new FakeImages(clock);
  const puller = new ImagePuller({ images, clock, ...options });
  const events: string[] = [];
  const ensure = (request: Partial<ImageRequest> = {}, signal = new AbortController().signal) =>
    puller.ensure(
      {
        podUid: 'u-1',
        image: 'nginx:1',
        policy: 'IfNotPresent',
        sandboxConfig: undefined,
        onEvent: ({ type, reason, message }) => events.push(`${type} ${reason}: ${message}`),
        ...request,
      },
      signal,
    );
  /** Runs `promise` while time goes by. */
  const elapse = async <T>(promise: Promise<T>, ms = 10_000): Promise<T> => {
    await clock.advance(ms);
    return promise;
  };
  return { clock, images, ensure, elapse, events };
}

suite('image puller', () => {
  test('an image that is there is not pulled', async () => {
    const { images, ensure, events } = setup();
    images.present.add('nginx:1');
    assert.deepEqual(await ensure(), {
      ok: true,
      imageRef: 'id-of-nginx:1',
      user: { uid: 7n, username: '' },
      pulled: false,
      durationMs: 0,
    });
    assert.equal(images.pulls.length, 0);
    assert.deepEqual(events, ['Normal Pulled: Container image "nginx:1" already present on machine']);
  });

  test('an absent image is pulled', async () => {
    const { images, ensure, elapse, events } = setup();
    images.user = { uid: undefined, username: 'app' };
    const outcome = await elapse(ensure({ image: 'nginx', annotations: { a: 'b' } }));
    assert.deepEqual(outcome, {
      ok: true,
      imageRef: 'id-of-nginx:latest',
      user: { uid: undefined, username: 'app' },
      pulled: true,
      durationMs: 1000,
    });
    const { image, auth: used } = images.pulls[0] ?? {};
    assert.deepEqual(
      [image?.image, image?.userSpecifiedImage, image?.annotations],
      ['nginx:latest', 'nginx', { a: 'b' }],
    );
    assert.equal(used, undefined);
    assert.deepEqual(events, [
      'Normal Pulling: Pulling image "nginx"',
      'Normal Pulled: Successfully pulled image "nginx" in 1s (1s including waiting). Image size: 1234 bytes.',
    ]);
  });

  test('Always pulls without looking first', async () => {
    const { images, ensure, elapse } = setup();
    images.present.add('nginx:1');
    const outcome = await elapse(ensure({ policy: 'Always' }));
    assert.ok(outcome.ok && outcome.pulled);
    assert.deepEqual([images.pulls.length, images.inspections], [1, 1]);
  });

  test('Never fails when the image is absent, and never backs off', async () => {
    const { images, ensure, events } = setup();
    const message = 'Container image "nginx:1" is not present with pull policy of Never';
    assert.deepEqual(await ensure({ policy: 'Never' }), { ok: false, reason: 'ErrImageNeverPull', message });
    assert.equal(images.pulls.length, 0);
    assert.deepEqual(events, [
      `Warning ErrImageNeverPull: ${message}`,
      'Warning Failed: Error: ErrImageNeverPull',
    ]);
  });

  test('a name that is none', async () => {
    const { ensure, events } = setup();
    const message = `Failed to apply default image tag "Nginx": couldn't parse image name "Nginx": invalid reference format: repository name (library/Nginx) must be lowercase`;
    assert.deepEqual(await ensure({ image: 'Nginx' }), { ok: false, reason: 'InvalidImageName', message });
    assert.deepEqual(events, [
      `Warning InspectFailed: ${message}`,
      'Warning Failed: Error: InvalidImageName',
    ]);
  });

  test('an inspection that fails', async () => {
    const { images, ensure, events } = setup();
    images.inspectionError = refusal('no store');
    const message = 'Failed to inspect image "nginx:1": no store';
    assert.deepEqual(await ensure(), { ok: false, reason: 'ImageInspectError', message });
    assert.deepEqual(events, [
      `Warning InspectFailed: ${message}`,
      'Warning Failed: Error: ImageInspectError',
    ]);
  });

  test('an inspection that fails after the pull is not pulled again with other credentials', async () => {
    const { images, ensure, elapse } = setup();
    images.inspectionError = refusal('no store');
    const outcome = await elapse(ensure({ policy: 'Always', credentials: auths('a', 'b') }));
    assert.ok(!outcome.ok && outcome.reason === 'ImageInspectError');
    assert.equal(images.pulls.length, 1);
  });

  test('a failed pull is tried again after 10 s, then 20 s, and success ends the back-off', async () => {
    const { clock, images, ensure, elapse, events } = setup();
    images.refuse = () => refusal('manifest unknown');
    assert.deepEqual(await elapse(ensure(), 1000), {
      ok: false,
      reason: 'ErrImagePull',
      message: 'manifest unknown',
      retryAt: 2000,
    });
    assert.deepEqual(await ensure(), {
      ok: false,
      reason: 'ImagePullBackOff',
      message: 'Back-off pulling image "nginx:1": ErrImagePull: manifest unknown',
      retryAt: 11_000,
    });
    assert.deepEqual(events, [
      'Normal Pulling: Pulling image "nginx:1"',
      'Warning Failed: Failed to pull image "nginx:1": manifest unknown',
      'Warning Failed: Error: ErrImagePull',
      'Normal BackOff: Back-off pulling image "nginx:1"',
      'Warning Failed: Error: ImagePullBackOff',
    ]);
    assert.equal(images.pulls.length, 1);

    await clock.advance(10_000);
    const second = await elapse(ensure(), 1000);
    assert.ok(!second.ok && second.reason === 'ErrImagePull');
    const told = await ensure();
    assert.ok(!told.ok && told.reason === 'ImagePullBackOff' && told.retryAt === 32_000);

    // Another pod is not held back by this one's failures.
    images.refuse = undefined;
    assert.ok((await elapse(ensure({ podUid: 'u-2', policy: 'Always' }), 1000)).ok);

    await clock.advance(20_000);
    assert.ok((await elapse(ensure({ policy: 'Always' }), 1000)).ok);
    images.refuse = () => refusal('gone');
    const fresh = await elapse(ensure({ policy: 'Always' }), 1000);
    assert.ok(!fresh.ok && fresh.retryAt === clock.now() + 1000);
    const held = await ensure({ policy: 'Always' });
    assert.ok(!held.ok && held.retryAt === clock.now() + 10_000);
  });

  test('causes that the runtime names are shown as reasons', async () => {
    for (const [detail, reason, message] of [
      [
        'RegistryUnavailable: dial tcp',
        'RegistryUnavailable',
        'image pull failed for nginx:1 because the registry is unavailable: dial tcp',
      ],
      [
        'SignatureValidationFailed: bad key',
        'SignatureValidationFailed',
        'image pull failed for nginx:1 because the signature validation failed: bad key',
      ],
    ] as const) {
      const { images, ensure, elapse } = setup();
      images.refuse = () => refusal(detail);
      const outcome = await elapse(ensure(), 1000);
      assert.deepEqual(outcome, { ok: false, reason, message, retryAt: 2000 });
    }
  });

  test('credentials are tried in order', async () => {
    const { images, ensure, elapse } = setup();
    images.refuse = (request) =>
      request.auth?.username === 'good' ? undefined : refusal(`denied ${request.auth?.username}`);
    const outcome = await elapse(ensure({ credentials: auths('bad', 'good', 'unused') }));
    assert.ok(outcome.ok);
    assert.deepEqual(
      images.pulls.map((pull) => pull.auth?.username),
      ['bad', 'good'],
    );
    const failed = await elapse(ensure({ podUid: 'u-2', policy: 'Always', credentials: auths('a', 'b') }));
    assert.ok(!failed.ok && failed.message === '[denied a, denied b]');
  });

  test('pods that want the same share one pull; other credentials get their own', async () => {
    const { images, ensure, elapse, events } = setup();
    const outcomes = await elapse(
      Promise.all([ensure(), ensure({ podUid: 'u-2' }), ensure({ podUid: 'u-3', credentials: auths('a') })]),
    );
    assert.ok(outcomes.every(({ ok }) => ok));
    assert.equal(images.pulls.length, 2);
    assert.equal(events.filter((event) => event.startsWith('Normal Pulling')).length, 3);
    assert.equal(events.filter((event) => event.startsWith('Normal Pulled: Successfully')).length, 3);
  });

  test('a pod that goes leaves the pull to the others; the last one ends it', async () => {
    const { clock, images, ensure, events } = setup();
    const [first, second] = [new AbortController(), new AbortController()];
    const going = ensure({}, first.signal);
    const staying = ensure({ podUid: 'u-2' }, second.signal);
    await clock.advance(500);
    first.abort(new Error('pod gone'));
    await assert.rejects(going, /pod gone/);
    assert.equal(images.atOnce, 1);
    second.abort(new Error('pod gone too'));
    await assert.rejects(staying, /pod gone too/);
    await clock.advance(0);
    assert.equal(images.atOnce, 0);
    assert.equal(
      events.some((event) => event.includes('Failed')),
      false,
    );
    // Giving up is no failure: the next try need not wait.
    const again = ensure();
    await clock.advance(1000);
    assert.ok((await again).ok);
  });

  test('waiting for a place shows in the event', async () => {
    const { images, ensure, elapse, events } = setup({ maxParallelImagePulls: 1 });
    const outcomes = await elapse(
      Promise.all(['a', 'b', 'c'].map((image) => ensure({ image: `${image}:1` }))),
    );
    assert.ok(outcomes.every(({ ok }) => ok));
    assert.equal(images.mostAtOnce, 1);
    assert.ok(events.some((event) => event.includes('pulled image "c:1" in 1s (3s including waiting)')));
  });

  test('the limit that is configured holds', async () => {
    const { images, ensure, elapse } = setup({ maxParallelImagePulls: 2 });
    await elapse(Promise.all([1, 2, 3, 4, 5].map((n) => ensure({ image: `a:${n}` }))));
    assert.equal(images.mostAtOnce, 2);
  });

  test('pulls above the rate wait for their turn, and none of them fails', async () => {
    const { clock, images, ensure } = setup({ rate: { perSecond: 2, burst: 3 } });
    const all = Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map((image) => ensure({ image })));
    const started: number[] = [];
    for (let ms = 0; ms < 2000; ms += 100) {
      await clock.advance(100);
      started.push(images.pulls.length);
    }
    // Three at once, then one each half second.
    assert.deepEqual([started[0], started[3], started[5], started[10], started[16]], [3, 3, 4, 5, 6]);
    await clock.advance(10_000);
    assert.ok((await all).every(({ ok }) => ok));
  });

  test('a pod that goes while its pull waits for its turn does not pull', async () => {
    const { clock, images, ensure } = setup({ rate: { perSecond: 0.5, burst: 0 } });
    const first = ensure({ image: 'a' });
    const stop = new AbortController();
    const second = ensure({ image: 'b' }, stop.signal);
    await clock.advance(1000);
    assert.equal(images.pulls.length, 1);
    stop.abort(new Error('the pod has gone'));
    await assert.rejects(second, /the pod has gone/);
    await clock.advance(10_000);
    assert.ok((await first).ok);
    assert.equal(images.pulls.length, 1);
  });

  test('without a limit configured, slow pulls do not keep others waiting', async () => {
    const { clock, images, ensure } = setup();
    images.pullMs = 3_600_000;
    const controller = new AbortController();
    const all = Array.from({ length: 12 }, (_, n) => ensure({ image: `a:${n}` }, controller.signal));
    await clock.advance(1000);
    assert.equal(images.atOnce, 8);
    await clock.advance(60_000);
    assert.equal(images.atOnce, 12);
    controller.abort(new Error('stop'));
    await Promise.allSettled(all);
  });

  suite('images that not everybody may use', () => {
    class FakeAccess implements ImageAccess {
      readonly notes: unknown[] = [];
      must = true;
      refuseToBegin = false;
      async mustPull(image: string, id: string, credentials: () => Promise<readonly PullCredential[]>) {
        this.notes.push(['must', image, id, (await credentials()).length]);
        return this.must;
      }
      async began(image: string) {
        this.notes.push(['began', image]);
        if (this.refuseToBegin) throw new Error('no space left');
      }
      async succeeded(image: string, id: string, credential: PullCredential | undefined) {
        this.notes.push(['succeeded', image, id, credential?.hash]);
      }
      async failed(image: string, mayHaveCome: boolean) {
        this.notes.push(['failed', image, mayHaveCome]);
      }
    }

    test('an image that is there is pulled for those who have not shown that they may', async () => {
      const access = new FakeAccess();
      const used: string[] = [];
      const { images, ensure, elapse, events } = setup({ access, onUse: (id) => used.push(id) });
      images.present.add('nginx:1');
      images.refuse = ({ auth: given }) => (given?.username === 'good' ? undefined : refusal('denied'));
      const outcome = await elapse(ensure({ credentials: auths('bad', 'good') }));
      assert.ok(outcome.ok && outcome.pulled);
      assert.deepEqual(access.notes, [
        ['must', 'nginx:1', 'id-of-nginx:1', 2],
        ['began', 'nginx:1'],
        ['succeeded', 'nginx:1', 'id-of-nginx:1', 'good'],
      ]);
      access.must = false;
      const again = await ensure();
      assert.ok(again.ok && !again.pulled);
      assert.equal(
        events.at(-1),
        'Normal Pulled: Container image "nginx:1" already present on machine and can be accessed by the pod',
      );
      assert.deepEqual(used, ['id-of-nginx:1', 'id-of-nginx:1']);
    });

    test('with policy Never it is as if it were absent', async () => {
      const { images, ensure } = setup({ access: new FakeAccess() });
      images.present.add('nginx:1');
      const outcome = await ensure({ policy: 'Never' });
      assert.ok(!outcome.ok && outcome.reason === 'ErrImageNeverPull');
      assert.equal(images.pulls.length, 0);
    });

    test('a pull that fails leaves no note, one whose end is unknown does', async () => {
      const access = new FakeAccess();
      const { clock, images, ensure, elapse } = setup({ access });
      images.refuse = () => refusal('denied');
      await elapse(ensure(), 1000);
      images.refuse = () =>
        new RuntimeCallError({
          call: 'PullImage',
          object: '',
          code: RuntimeErrorCode.Unavailable,
          detail: 'EOF',
        });
      await elapse(ensure({ podUid: 'u-2' }), 1000);
      const controller = new AbortController();
      const given = ensure({ podUid: 'u-3' }, controller.signal);
      await clock.advance(500);
      controller.abort(new Error('pod gone'));
      await assert.rejects(given, /pod gone/);
      await clock.advance(0);
      assert.deepEqual(
        access.notes.filter((note) => (note as string[])[0] === 'failed'),
        [
          ['failed', 'nginx:1', false],
          ['failed', 'nginx:1', true],
          ['failed', 'nginx:1', true],
        ],
      );
    });

    test('a pull that cannot be noted does not begin', async () => {
      const access = new FakeAccess();
      access.refuseToBegin = true;
      const { images, ensure, elapse } = setup({ access });
      const outcome = await elapse(ensure(), 1000);
      assert.ok(!outcome.ok);
      assert.equal(
        outcome.message,
        'Failed to record image pull intent for container image "nginx:1": no space left',
      );
      assert.equal(images.pulls.length, 0);
    });
  });

  test('everybody who waits for a pull hears how far it is', async () => {
    const downloads = { follow: () => ({ look: async () => ({ doneBytes: 7, totalBytes: 9 }) }) };
    const { images, ensure, elapse } = setup({ downloads });
    images.pullMs = 2500;
    const heard: string[] = [];
    const listener = (name: string) => (progress: PullProgress) =>
      heard.push(`${name} ${progressMessage('nginx:1', progress)}`);
    await elapse(
      Promise.all([
        ensure({ onProgress: listener('a') }),
        ensure({ podUid: 'u-2', onProgress: listener('b') }),
      ]),
    );
    assert.deepEqual(
      heard,
      [1, 2].flatMap(() => ['a', 'b'].map((name) => `${name} Pulling image "nginx:1": 7 of 9 bytes`)),
    );
  });

  test('pull durations are kept by size of the image', () => {
    const seen: unknown[] = [];
    const record = pullDurationMetric({
      histogram: () => ({
        observe: (value: number, labels?: Record<string, string>) =>
          seen.push([value, labels?.image_size_in_bytes]),
        remove() {},
      }),
      counter: () => ({ inc() {}, remove() {} }),
      gauge: () => ({ set() {}, remove() {} }),
      observedGauge() {},
    });
    record(1500, 0);
    record(1000, 5);
    record(1000, 10 * 2 ** 20);
    record(1000, 200 * 2 ** 30);
    assert.deepEqual(seen, [
      [1.5, 'N/A'],
      [1, '0-10MB'],
      [1, '10MB-100MB'],
      [1, 'GT100GB'],
    ]);
  });
});
