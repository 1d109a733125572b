/** Puts a small image into a registry by its HTTP interface. */
import { createHash } from 'node:crypto';
import { tarArchive } from '../../scripts/machine/tar-archive.ts';

export interface Push {
  readonly port: number;
  readonly user: { readonly name: string; readonly password: string };
  /** Such as `team/app`. */
  readonly repository: string;
  readonly tag: string;
  /** One layer with one file for each. */
  readonly layers: readonly Buffer[];
}

export async function pushImage({ port, user, repository, tag, layers }: Push): Promise<void> {
  const base = `http://127.0.0.1:${port}/v2/${repository}`;
  const authorization = `Basic ${Buffer.from(`${user.name}:${user.password}`).toString('base64')}`;
  const send = async (url: string, method: string, body?: Buffer, type = 'application/octet-stream') => {
    const headers = { authorization, 'content-type': type };
    const answer = await fetch(url, { method, headers, ...(body && { body: new Uint8Array(body) }) });
    if (!answer.ok) throw new Error(`${method} ${url}: ${answer.status} ${await answer.text()}`);
    return answer;
  };
  const pushBlob = async (mediaType: string, content: Buffer) => {
    const digest = `sha256:${createHash('sha256').update(content).digest('hex')}`;
    const started = await send(`${base}/blobs/uploads/`, 'POST');
    const location = new URL(started.headers.get('location') ?? '', base);
    location.searchParams.set('digest', digest);
    await send(location.href, 'PUT', content);
    return { mediaType, digest, size: content.length };
  };
  const archives = layers.map((content) =>
    tarArchive([{ type: 'file', path: 'data', mode: 0o644, content }]),
  );
  const descriptors = [];
  for (const archive of archives) {
    descriptors.push(await pushBlob('application/vnd.oci.image.layer.v1.tar', archive));
  }
  const config = await pushBlob(
    'application/vnd.oci.image.config.v1+json',
    Buffer.from(
      JSON.stringify({
        architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
        os: 'linux',
        config: { Cmd: ['/data'], Labels: { repository, tag } },
        rootfs: { type: 'layers', diff_ids: descriptors.map(({ digest }) => digest) },
      }),
    ),
  );
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = { schemaVersion: 2, mediaType, config, layers: descriptors };
  await send(`${base}/manifests/${tag}`, 'PUT', Buffer.from(JSON.stringify(manifest)), mediaType);
}
