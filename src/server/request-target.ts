/**
 * Takes a request's target apart, once, for everybody: who decides about rights and who looks for a route see
 * the same segments, so no spelling of a path can mean one thing to the one and another to the other.
 */
export interface RequestTarget {
  /** Decoded. */
  readonly path: string;
  /** What stands between the slashes of `path`; the last is empty when it ends with a slash. */
  readonly segments: readonly string[];
  readonly query: URLSearchParams;
  /** False for a path with `.`, `..`, empty segments or NUL: it leads nowhere. */
  readonly isPlain: boolean;
}

/** Undefined when it is no target at all: badly encoded, or no path. */
export function parseTarget(target: string): RequestTarget | undefined {
  const local = target.replace(/^https?:\/\/[^/?]*/i, '');
  const at = local.indexOf('?');
  const raw = (at < 0 ? local : local.slice(0, at)) || '/';
  if (!raw.startsWith('/')) return undefined;
  let path: string;
  try {
    path = decodeURIComponent(raw);
  } catch {
    return undefined;
  }
  const segments = path.slice(1).split('/');
  const inner = segments.at(-1) === '' ? segments.slice(0, -1) : segments;
  const isPlain = !path.includes('\0') && inner.every((one) => one !== '' && one !== '.' && one !== '..');
  return { path, segments, query: new URLSearchParams(at < 0 ? '' : local.slice(at)), isPlain };
}
