/**
 * projected: files of several sources in one volume, in memory: config maps, secrets, the downward API,
 * tokens of the pod's service account, certificates that the cluster trusts, and keys with certificates of the
 * pod's own. What is secret of it is only ever in memory.
 */
import { podContainers } from '../kubernetes/init-containers.ts';
import type { ResourceAmounts } from '../kubernetes/pod-resources.ts';
import type { PodSpec, Volume } from '../kubernetes/types.ts';
import { type Files, safeFilePath, type WrittenFile } from './atomic-writer.ts';
import { downwardFiles } from './downward-files.ts';
import { type FilesRequest, FileVolumes, type RefreshableKind } from './file-volumes.ts';
import type { MemoryFileSystems } from './memory-file-systems.ts';
import { defaultFileMode, objectFiles } from './object-files.ts';
import type { VolumeContents } from './volume-contents.ts';
import { NeedsApiServerError, VolumeError } from './volume-kind.ts';

export type ProjectedVolumeSource = NonNullable<Volume['projected']>;
type Projection = NonNullable<ProjectedVolumeSource['sources']>[number];

/** A projected volume has a source that this program does not have. */
export class UnsupportedProjectionError extends VolumeError {
  override readonly name = 'UnsupportedProjectionError';
  readonly source: string;
  constructor(volume: string, source: string) {
    super(
      volume,
      `projected volume "${volume}" has the source ${source}, which is not supported yet; ` +
        'supported are configMap, secret, downwardAPI, serviceAccountToken, clusterTrustBundle and podCertificate',
    );
    this.source = source;
  }
}

export interface ProjectedVolumesOptions {
  /** Absent without an API server: the downward API is all there is then. */
  readonly contents: VolumeContents | undefined;
  readonly nodeAllocatable: ResourceAmounts;
  readonly memory: MemoryFileSystems;
}

export function projectedVolumes(options: ProjectedVolumesOptions): RefreshableKind<ProjectedVolumeSource> {
  return new FileVolumes({
    kind: 'projected',
    plugin: 'kubernetes.io/projected',
    memory: options.memory,
    files: async (request, signal) => {
      const sources = request.source.sources ?? [];
      const parts = await Promise.allSettled(
        sources.map((source, index) => filesOf({ source, index }, request, options, signal)),
      );
      signal.throwIfAborted();
      const failures = parts.flatMap((part) => (part.status === 'rejected' ? [part.reason as Error] : []));
      if (failures.length === 1) throw failures[0]!;
      if (failures.length > 1) throw joined(request.name, failures);
      const files = new Map<string, WrittenFile>();
      // The later source wins; under the name the file will have, however it is spelled.
      for (const part of parts) {
        if (part.status !== 'fulfilled') continue;
        for (const [path, file] of part.value) files.set(safeFilePath(path), file);
      }
      return files;
    },
  });
}

async function filesOf(
  { source: projection, index }: { source: Projection; index: number },
  request: FilesRequest<ProjectedVolumeSource>,
  options: ProjectedVolumesOptions,
  signal: AbortSignal,
): Promise<Files> {
  const { pod, name: volume, source } = request;
  const { namespace } = pod.metadata;
  const { defaultMode = defaultFileMode } = source;
  const { nodeAllocatable } = options;
  const contents = (what: string): VolumeContents => {
    if (!options.contents) throw new NeedsApiServerError(volume, `projected (${what})`);
    return options.contents;
  };
  const { configMap, secret, downwardAPI, serviceAccountToken, clusterTrustBundle, podCertificate } =
    projection;
  if (configMap) {
    const { name = '', items, optional } = configMap;
    const entries = await contents('configMap').configMap(namespace, name, signal);
    return objectFiles({ kind: 'configmap', name, volume, entries, items, optional, defaultMode });
  }
  if (secret) {
    const { name = '', items, optional } = secret;
    const entries = await contents('secret').secret(namespace, name, signal);
    return objectFiles({ kind: 'secret', name, volume, entries, items, optional, defaultMode });
  }
  if (downwardAPI) {
    return downwardFiles({ pod, volume, items: downwardAPI.items ?? [], defaultMode, nodeAllocatable });
  }
  if (serviceAccountToken) {
    const { path, audience, expirationSeconds } = serviceAccountToken;
    const existing = await request.existing(path);
    const wish = { pod, audience, expirationSeconds, existing };
    const token = await contents('serviceAccountToken').serviceAccountToken(wish, signal);
    const { mode, uid } = tokenAccess(pod.spec, defaultMode);
    return new Map([[path, { content: Buffer.from(token), mode, uid }]]);
  }
  if (clusterTrustBundle) {
    const { name, signerName, labelSelector, optional = false, path } = clusterTrustBundle;
    const source = contents('clusterTrustBundle');
    if (!source.trustedCertificates) {
      throw gateOff(volume, 'clusterTrustBundle', 'ClusterTrustBundleProjection');
    }
    const wish = { pod, name, signerName, labelSelector };
    const certificates = await source.trustedCertificates(wish, signal);
    if (certificates === undefined && !optional) {
      const which = name === undefined ? `of the signer "${signerName}" that fits` : `"${name}"`;
      throw new VolumeError(volume, `there is no cluster trust bundle ${which}`);
    }
    const { mode, uid } = tokenAccess(pod.spec, defaultMode);
    return new Map([[path, { content: Buffer.from(certificates ?? ''), mode, uid }]]);
  }
  if (podCertificate) {
    const source = contents('podCertificate');
    if (!source.podCertificate) throw gateOff(volume, 'podCertificate', 'PodCertificateRequest');
    const { credentialBundlePath, keyPath, certificateChainPath } = podCertificate;
    const paths = [credentialBundlePath, keyPath, certificateChainPath].filter((path) => path !== undefined);
    const existing = (await Promise.all(paths.map(request.existing))).join('\n');
    const wish = { pod, source: `${volume}/${index}`, projection: podCertificate, existing };
    const { key, chain } = await source.podCertificate(wish, signal);
    const { mode, uid } = tokenAccess(pod.spec, defaultMode);
    const files = new Map<string, WrittenFile>();
    const write = (path: string | undefined, text: string) => {
      if (path) files.set(path, { content: Buffer.from(text), mode, uid });
    };
    write(keyPath, key);
    write(certificateChainPath, chain);
    write(credentialBundlePath, key + chain);
    return files;
  }
  const [unknown] = Object.entries(projection).flatMap(([key, value]) => (value ? [key] : []));
  if (unknown === undefined) return new Map();
  throw new UnsupportedProjectionError(volume, unknown);
}

/**
 * Who may read a token: the one user that all containers run as, and the `fsGroup`. When the pod tells
 * neither, everybody the volume's mode says.
 */
export function tokenAccess(spec: PodSpec, defaultMode: number): { mode: number; uid: number | undefined } {
  const uid = singleUser(spec);
  const isPrivate = uid !== undefined || spec.securityContext?.fsGroup !== undefined;
  return { mode: isPrivate ? 0o600 : defaultMode, uid };
}

/** The user that every container of the pod is told to run as. */
function singleUser(spec: PodSpec): number | undefined {
  const users = new Set<number | undefined>();
  for (const { container } of podContainers(spec)) {
    users.add(container.securityContext?.runAsUser ?? spec.securityContext?.runAsUser);
  }
  return users.size === 1 ? [...users][0] : undefined;
}

function gateOff(volume: string, source: string, gate: string): VolumeError {
  return new VolumeError(
    volume,
    `projected volume "${volume}" has the source ${source}, and the feature gate ${gate} is off`,
  );
}

function joined(volume: string, failures: readonly Error[]): VolumeError {
  const message = `[${failures.map((failure) => failure.message).join(', ')}]`;
  return new VolumeError(volume, message, { cause: new AggregateError(failures) });
}
