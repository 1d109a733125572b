/**
 * Image references: `[domain/]path[:tag][@digest]`, with Docker's short names made whole
 * (`nginx` is `docker.io/library/nginx`).
 */

export interface ImageReference {
  /** `docker.io`, `registry.example.com:5000`, … */
  readonly domain: string;
  /** `library/nginx` */
  readonly path: string;
  readonly tag?: string;
  /** `sha256:…` */
  readonly digest?: string;
}

/** The text is no image reference; `message` is the one container tools give. */
export class ImageReferenceError extends Error {
  override readonly name = 'ImageReferenceError';
}

const domainName = '(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])';
const domain = `(?:${domainName}(?:\\.${domainName})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?`;
const pathPart = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*';
const digestAlgorithm = '[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*';
const reference = new RegExp(
  `^(${domain})/(${pathPart}(?:/${pathPart})*)(?::(\\w[\\w.-]{0,127}))?(?:@(${digestAlgorithm}:[0-9a-fA-F]{32,}))?$`,
);
const digestLengths: Readonly<Record<string, number>> = { sha256: 64, sha384: 96, sha512: 128 };

/** Reads and completes a reference. Throws {@link ImageReferenceError}. */
export function parseImageReference(text: string): ImageReference {
  if (/^[a-f0-9]{64}$/.test(text)) {
    throw new ImageReferenceError(
      `invalid repository name (${text}), cannot specify 64-byte hexadecimal strings`,
    );
  }
  const { host, rest } = splitDomain(text);
  const name = /^[^:@]*/.exec(rest)?.[0] ?? '';
  if (name !== name.toLowerCase()) {
    throw new ImageReferenceError(`invalid reference format: repository name (${name}) must be lowercase`);
  }
  const parts = reference.exec(`${host}/${rest}`);
  if (!parts) throw new ImageReferenceError('invalid reference format');
  const [, domain = '', path = '', tag, digest] = parts;
  if (path.length > 255) {
    throw new ImageReferenceError('repository name must not be more than 255 characters');
  }
  if (digest !== undefined) checkDigest(digest);
  return { domain, path, ...(tag === undefined ? {} : { tag }), ...(digest === undefined ? {} : { digest }) };
}

/** As {@link parseImageReference}, but `undefined` instead of an error. */
export function tryParseImageReference(text: string): ImageReference | undefined {
  try {
    return parseImageReference(text);
  } catch (error) {
    if (error instanceof ImageReferenceError) return undefined;
    throw error;
  }
}

/** The full text of a reference. */
export function formatImageReference({ domain, path, tag, digest }: ImageReference): string {
  return `${domain}/${path}${tag === undefined ? '' : `:${tag}`}${digest === undefined ? '' : `@${digest}`}`;
}

/**
 * The image as it is asked for from the runtime: `:latest` is added when there is neither tag nor digest;
 * short names stay short, since the runtime may complete them its own way. Throws
 * {@link ImageReferenceError} with the kubelet's message.
 */
export function applyDefaultTag(image: string): string {
  let parsed: ImageReference;
  try {
    parsed = parseImageReference(image);
  } catch (error) {
    if (!(error instanceof ImageReferenceError)) throw error;
    throw new ImageReferenceError(`couldn't parse image name ${JSON.stringify(image)}: ${error.message}`, {
      cause: error,
    });
  }
  return parsed.tag === undefined && parsed.digest === undefined ? `${image}:latest` : image;
}

/** What `imagePullPolicy` defaults to: Always for the tag `latest`, written or implied; else IfNotPresent. */
export function defaultPullPolicy(image: string): 'Always' | 'IfNotPresent' {
  const parsed = tryParseImageReference(image);
  if (!parsed) return 'IfNotPresent';
  const tag = parsed.tag ?? (parsed.digest === undefined ? 'latest' : undefined);
  return tag === 'latest' ? 'Always' : 'IfNotPresent';
}

/** A first part is a domain when it looks like a host: a dot, a port, `localhost`, or upper case. */
function splitDomain(text: string): { host: string; rest: string } {
  const slash = text.indexOf('/');
  const first = text.slice(0, Math.max(slash, 0));
  const isHost =
    slash !== -1 && (/[.:]/.test(first) || first === 'localhost' || first !== first.toLowerCase());
  let host = isHost ? first : 'docker.io';
  const rest = isHost ? text.slice(slash + 1) : text;
  if (host === 'index.docker.io') host = 'docker.io';
  return { host, rest: host === 'docker.io' && !rest.includes('/') ? `library/${rest}` : rest };
}

function checkDigest(digest: string): void {
  const [algorithm = '', hex = ''] = digest.split(':');
  const length = Object.hasOwn(digestLengths, algorithm) ? digestLengths[algorithm] : undefined;
  if (length === undefined) throw new ImageReferenceError('unsupported digest algorithm');
  if (hex.length !== length) throw new ImageReferenceError('invalid checksum digest length');
  if (!/^[a-f0-9]+$/.test(hex)) throw new ImageReferenceError('invalid checksum digest format');
}
