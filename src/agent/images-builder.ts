/** Builds everything about images: credentials, who may use what, pulling, removing. */
import { ImageKeyring } from '../credentials/image-keyring.ts';
import type { CriClient } from '../runtime/cri/cri-client.ts';
import { ImageCollector } from '../runtime/garbage/image-collector.ts';
import { containerdContentStore, containerdDownloads } from '../runtime/images/containerd-downloads.ts';
import { ImagePuller } from '../runtime/images/image-puller.ts';
import { PullRecords } from '../runtime/images/pull-records.ts';
import type { NodeAgentOptions } from './agent-context.ts';
import type { Membership } from './cluster/membership.ts';

/** What deals with images: credentials, pulling, removing. */
export interface ImageRooms {
  readonly keyring: ImageKeyring;
  readonly puller: ImagePuller;
  readonly collector: ImageCollector;
}

export interface ImageRoomsInput extends Pick<NodeAgentOptions, 'settings' | 'clock' | 'logger' | 'metrics'> {
  readonly runtime: CriClient;
  readonly runtimeName: string;
  readonly nodeName: string;
  readonly membership: Membership;
  /** Images that pods mount as volumes. */
  readonly volumeImages: () => Iterable<string>;
  readonly signal: AbortSignal;
}

/** Rejects when the credential providers are not configured correctly. */
export async function buildImages(input: ImageRoomsInput): Promise<ImageRooms> {
  const { settings, clock, logger, metrics, runtime, runtimeName, nodeName, membership, signal } = input;
  const { rootDirectory, images } = settings;
  const common = { rootDirectory, clock, logger, metrics };
  const keyring = ImageKeyring.open({
    ...common,
    homeDirectory: process.env['HOME'],
    providers: images.credentialProviders,
    serviceAccounts: membership.objects.serviceAccounts,
    environment: process.env,
  });
  const access = images.verification && new PullRecords({ ...common, ...images.verification });
  await access?.recover(async (image) => {
    const spec = { image, annotations: {}, userSpecifiedImage: image, runtimeHandler: '', imageRef: '' };
    return (await runtime.imageStatus({ image: spec, verbose: false }, { signal })).image?.id;
  });
  const collector = new ImageCollector({
    ...common,
    runtime,
    rules: images.collection,
    nodeName,
    events: membership.events,
    volumeImages: input.volumeImages,
    onListed: async (ids, askedAt) => {
      membership.node.imageUsed(undefined);
      await access?.prune(ids, askedAt);
    },
  });
  const { maxParallelImagePulls, pullRate } = settings.runtime;
  const puller = new ImagePuller({
    images: runtime,
    clock,
    logger,
    metrics,
    maxParallelImagePulls: Number.isFinite(maxParallelImagePulls) ? maxParallelImagePulls : undefined,
    rate: pullRate,
    access,
    ...(runtimeName === 'containerd' && {
      downloads: containerdDownloads(containerdContentStore(runtime.imageConnection)),
    }),
    onUse: (id) => {
      collector.touch(id);
      membership.node.imageUsed(id);
    },
  });
  return { keyring, puller, collector };
}
