import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { ContainerPlace } from '../kubernetes/init-containers.ts';
import type { Pod } from '../kubernetes/types.ts';
import type { ImageOutcome, ImageRequest } from '../runtime/images/image-puller.ts';
import { testPod } from './fixtures/pod-model.ts';
import { ImageVolumes, volumeImages } from './image-volumes.ts';

const { signal } = new AbortController();
let asked: { image: string; policy: string }[];
let events: string[];
let outcomes: Map<string, ImageOutcome>;
let pod: Pod;

const found = (imageRef: string): ImageOutcome => ({
  ok: true,
  imageRef,
  user: { uid: undefined, username: '' },
  pulled: false,
  durationMs: 0,
});

beforeEach(() => {
  asked = [];
  events = [];
  outcomes = new Map();
  const base = testPod();
  pod = {
    ...base,
    spec: {
      ...base.spec,
      volumes: [
        { name: 'model', image: { reference: 'models/big:1', pullPolicy: 'Always' } },
        { name: 'other', image: { reference: 'models/other:1' } },
        { name: 'data', emptyDir: {} },
      ],
    },
  };
});

function imageVolumes(imageVolumesMissing?: string): ImageVolumes {
  return new ImageVolumes({
    images: {
      ensure: async ({ image, policy, onEvent }: ImageRequest) => {
        asked.push({ image, policy });
        onEvent({ type: 'Normal', reason: 'Pulling', message: image });
        return outcomes.get(image) ?? found(`sha256:${image}`);
      },
    },
    imageVolumesMissing: () => imageVolumesMissing,
    credentialsFor: async () => [],
    events: {
      event: (object, type, reason, message) => {
        events.push(`${'fieldPath' in object ? object.fieldPath : ''} ${type} ${reason}: ${message}`);
      },
    },
  });
}

function place(...mounts: string[]): ContainerPlace {
  const container = {
    name: 'web',
    volumeMounts: mounts.map((name) => ({ name, mountPath: `/${name}` })),
  };
  return { container, kind: 'regular', fieldPath: 'spec.containers{web}' };
}
const ensure = (volumes: ImageVolumes, ...mounts: string[]) =>
  volumes.ensure({ pod, place: place(...mounts), sandboxConfig: undefined, signal });

describe('the images of volumes', () => {
  it('are fetched by their own policy, those the container mounts and no others', async () => {
    const volumes = imageVolumes();
    assert.equal(await ensure(volumes, 'model', 'data'), undefined);
    assert.deepEqual(asked, [{ image: 'models/big:1', policy: 'Always' }]);
    assert.equal(volumes.reference(pod.metadata.uid, 'model'), 'sha256:models/big:1');
    assert.match(events[0]!, /Normal Pulling: models\/big:1/);
  });

  it('that cannot be had keep back the container, with their reason', async () => {
    const volumes = imageVolumes();
    const failure = { ok: false, reason: 'ErrImagePull', message: 'no such image', retryAt: 5 } as const;
    outcomes.set('models/other:1', failure);
    assert.deepEqual(await ensure(volumes, 'model', 'other'), failure);
    assert.equal(events.at(-1), 'spec.containers{web} Warning Failed: Error: no such image');
    assert.throws(
      () => volumes.reference(pod.metadata.uid, 'other'),
      /the image of volume "other" has not been fetched/,
    );
  });

  it('are not fetched for a runtime that cannot mount them; the container is refused', async () => {
    const volumes = imageVolumes('containerd 1.6.20 cannot mount images; it takes containerd 2.1');
    assert.equal(await ensure(volumes, 'model'), undefined);
    assert.deepEqual(asked, []);
    assert.throws(
      () => volumes.reference(pod.metadata.uid, 'model'),
      /volume "model" is an image volume: containerd 1.6.20 cannot mount images; it takes containerd 2.1/,
    );
  });

  it('are forgotten with their pod', async () => {
    const volumes = imageVolumes();
    await ensure(volumes, 'model');
    volumes.forget(pod.metadata.uid);
    assert.throws(() => volumes.reference(pod.metadata.uid, 'model'), /not been fetched/);
  });
});

it('the images of all volumes of pods are known by their references', () => {
  assert.deepEqual(volumeImages([pod, testPod()]), ['models/big:1', 'models/other:1']);
});
