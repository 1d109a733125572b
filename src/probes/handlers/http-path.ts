/** The `path` of an httpGet handler as it goes over the wire. */

/** What may not stand in a request line as it is. */
const unsafe = /[^\x21-\x7e]+|["<>\\^`{|}]/g;
const schemeAndHost = /^(?:[a-z][a-z0-9+.-]*:)?\/\/[^/?#]*/i;
const strayPercent = /%(?![0-9a-f]{2})/i;
const controlCharacter = /[\x00-\x1f\x7f]/; // oxlint-disable-line no-control-regex -- that is what is looked for

/**
 * Path and query, always with a leading slash. `path` is read as a URL: scheme, host and fragment in it are
 * dropped, `..` stays. What is no URL is a path as a whole, question marks and percent signs included.
 */
export function requestPath(path: string): string {
  const [beforeFragment = ''] = path.split('#', 1);
  const [pathname = ''] = beforeFragment.split('?', 1);
  if (strayPercent.test(pathname) || controlCharacter.test(path)) {
    return escapeUnsafe(withSlash(path).replace(/[%?#]/g, encodeURIComponent));
  }
  const bare = beforeFragment.replace(schemeAndHost, '');
  return escapeUnsafe(withSlash(bare));
}

const withSlash = (path: string) => (path.startsWith('/') ? path : `/${path}`);

const escapeUnsafe = (path: string) =>
  path.replace(unsafe, (text) =>
    [...Buffer.from(text)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
  );
