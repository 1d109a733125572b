/**
 * How much of an image has come, as containerd's content store tells on the socket that serves CRI as well.
 *
 * What is being written carries only the digest of a layer, so the layers are learned from the image's
 * manifest first: it is the one of the image's repository that names a layer under way. Several pulls at a
 * time are told apart that way. Until it is known, and while nothing is under way, nothing is answered.
 */
import { tryParseImageReference } from '../../kubernetes/image-reference.ts';
import type { GrpcConnection } from '../cri/grpc-connection.ts';
import { ContentDefinition, type Info, type Status } from '../generated/containerd-content.ts';
import type { DownloadedBytes, DownloadSource } from './pull-progress.ts';

/** containerd's namespace (not Kubernetes') in which its CRI plugin keeps everything. */
const criNamespace = 'k8s.io';
const timeoutMs = 5000;
/** Manifests are a few kilobytes; what is larger is none. */
const largestManifest = 4 * 1024 * 1024;

/** The calls of the content store that are needed. */
export interface ContentStore {
  /** What is being written. */
  statuses(signal: AbortSignal): Promise<Pick<Status, 'ref' | 'offset' | 'total'>[]>;
  /** What is complete and passes one of the filters. */
  list(filters: readonly string[], signal: AbortSignal): Promise<Info[]>;
  read(digest: string, signal: AbortSignal): Promise<Buffer>;
}

/** containerd's content service, which knows the blobs of images and those that are being fetched. */
export function containerdContentStore(connection: GrpcConnection, namespace = criNamespace): ContentStore {
  const { fullName: service, methods } = ContentDefinition;
  const metadata = { 'containerd-namespace': namespace };
  const subject = 'downloads';
  const within = (signal: AbortSignal) => AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  return {
    async statuses(signal) {
      const request = { filters: [] };
      const call = { service, method: methods.listStatuses, request, metadata, subject, signal, timeoutMs };
      return (await connection.unary(call)).statuses;
    },
    async list(filters, signal) {
      const found: Info[] = [];
      const request = { filters: [...filters] };
      await connection.stream(
        { service, method: methods.list, request, metadata, subject, signal: within(signal) },
        ({ info }) => found.push(...info),
      );
      return found;
    },
    async read(digest, signal) {
      const parts: Uint8Array[] = [];
      const request = { digest, offset: 0n, size: 0n };
      await connection.stream(
        { service, method: methods.read, request, metadata, subject, signal: within(signal) },
        ({ data }) => parts.push(data),
      );
      return Buffer.concat(parts);
    },
  };
}

interface Layer {
  readonly digest: string;
  readonly size: number;
}

/** Follows downloads by the blobs that grow in the content store. */
export function containerdDownloads(store: ContentStore): DownloadSource {
  return { follow: (image) => new Download(store, image) };
}

class Download {
  readonly #store: ContentStore;
  readonly #filter: string | undefined;
  readonly #manifests = new Map<string, readonly Layer[]>();
  #layers: readonly Layer[] | undefined;

  constructor(store: ContentStore, image: string) {
    this.#store = store;
    const reference = tryParseImageReference(image);
    // containerd notes on every blob which repositories of which host (without port) it came from, and on
    // manifests what they refer to.
    this.#filter =
      reference &&
      [
        `labels."containerd.io/distribution.source.${hostOf(reference.domain)}"~=${regexFor(reference.path)}`,
        'labels."containerd.io/gc.ref.content.config"',
      ].join();
  }

  async look(signal: AbortSignal): Promise<DownloadedBytes | undefined> {
    const statuses = await this.#store.statuses(signal);
    const written = new Map(statuses.map(({ ref, offset }) => [ref.replace(/^.*?-(?=sha\d+:)/, ''), offset]));
    this.#layers ??= await this.#findLayers(written, signal);
    const layers = this.#layers;
    if (layers === undefined) return undefined;
    const complete = await this.#store.list(
      layers.map(({ digest }) => `digest==${digest}`),
      signal,
    );
    const present = new Set(complete.map(({ digest }) => digest));
    let [doneBytes, totalBytes] = [0, 0];
    for (const { digest, size } of layers) {
      totalBytes += size;
      doneBytes += present.has(digest) ? size : Math.min(size, Number(written.get(digest) ?? 0n));
    }
    return { doneBytes, totalBytes };
  }

  async #findLayers(
    written: ReadonlyMap<string, bigint>,
    signal: AbortSignal,
  ): Promise<readonly Layer[] | undefined> {
    if (this.#filter === undefined || written.size === 0) return undefined;
    for (const { digest, size } of await this.#store.list([this.#filter], signal)) {
      if (this.#manifests.has(digest) || size > largestManifest) continue;
      this.#manifests.set(digest, layersOf(await this.#store.read(digest, signal)));
    }
    return [...this.#manifests.values()].find((layers) => layers.some(({ digest }) => written.has(digest)));
  }
}

function hostOf(domain: string): string {
  return domain.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
}

/** The label may hold several repositories, with commas. */
function regexFor(repository: string): string {
  const quoted = repository.replaceAll(/[.+*?()[\]{}|^$\\]/g, '\\$&');
  return JSON.stringify(`(^|,)${quoted}(,|$)`);
}

function layersOf(manifest: Buffer): Layer[] {
  try {
    const { layers } = JSON.parse(manifest.toString('utf8')) as { layers?: Partial<Layer>[] };
    return (layers ?? []).flatMap(({ digest, size }) =>
      typeof digest === 'string' && typeof size === 'number' ? [{ digest, size }] : [],
    );
  } catch {
    return [];
  }
}
