/**
 * Packs images into one OCI layout archive that `ctr images import` and registries understand. Layers
 * are stored uncompressed: the digests then do not depend on a compressor's version.
 */
import { createHash } from 'node:crypto';
import { type TarEntry, tarArchive } from './tar-archive.ts';

export interface ImageDefinition {
  /** Full reference, e.g. `localhost/kubelet-ts/web:1`. */
  reference: string;
  /** Each layer's entries; equal layers of several images are stored once. */
  layers: readonly (readonly TarEntry[])[];
  entrypoint?: readonly string[];
  command?: readonly string[];
  /** `USER` of the image: a name or a number, with or without a group. */
  user?: string;
  workingDirectory?: string;
  environment?: readonly string[];
}

interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
}

const epoch = '1970-01-01T00:00:00Z';

/** The archive of all images; `architecture` is OCI's name of it (`amd64`, `arm64`). */
export function ociArchive(images: readonly ImageDefinition[], architecture: string): Buffer {
  const blobs = new Map<string, Buffer>();
  const store = (mediaType: string, content: Buffer): Descriptor => {
    const hash = createHash('sha256').update(content).digest('hex');
    blobs.set(hash, content);
    return { mediaType, digest: `sha256:${hash}`, size: content.length };
  };
  const storeJson = (mediaType: string, value: unknown): Descriptor =>
    store(mediaType, Buffer.from(JSON.stringify(value)));

  const packed = new Map<readonly TarEntry[], Descriptor>();
  const layer = (entries: readonly TarEntry[]): Descriptor => {
    let descriptor = packed.get(entries);
    if (descriptor === undefined) {
      descriptor = store('application/vnd.oci.image.layer.v1.tar', tarArchive(entries));
      packed.set(entries, descriptor);
    }
    return descriptor;
  };

  const manifests = images.map((image) => {
    const layers = image.layers.map(layer);
    const config = storeJson('application/vnd.oci.image.config.v1+json', {
      created: epoch,
      architecture,
      os: 'linux',
      config: {
        User: image.user,
        Env: [
          'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
          ...(image.environment ?? []),
        ],
        Entrypoint: image.entrypoint,
        Cmd: image.command,
        WorkingDir: image.workingDirectory,
      },
      rootfs: { type: 'layers', diff_ids: layers.map(({ digest }) => digest) },
      history: layers.map(() => ({ created: epoch })),
    });
    const mediaType = 'application/vnd.oci.image.manifest.v1+json';
    return {
      ...storeJson(mediaType, { schemaVersion: 2, mediaType, config, layers }),
      platform: { architecture, os: 'linux' },
      annotations: {
        'io.containerd.image.name': image.reference,
        'org.opencontainers.image.ref.name': image.reference.slice(image.reference.lastIndexOf(':') + 1),
      },
    };
  });

  return tarArchive([
    { type: 'file', path: 'oci-layout', mode: 0o644, content: '{"imageLayoutVersion":"1.0.0"}' },
    {
      type: 'file',
      path: 'index.json',
      mode: 0o644,
      content: JSON.stringify({
        schemaVersion: 2,
        mediaType: 'application/vnd.oci.image.index.v1+json',
        manifests,
      }),
    },
    { type: 'directory', path: 'blobs', mode: 0o755 },
    { type: 'directory', path: 'blobs/sha256', mode: 0o755 },
    ...[...blobs].map(
      ([hash, content]): TarEntry => ({ type: 'file', path: `blobs/sha256/${hash}`, mode: 0o644, content }),
    ),
  ]);
}
