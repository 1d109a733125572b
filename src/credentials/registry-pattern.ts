/**
 * Patterns that say for which images a credential is good, as Docker's configuration files, pull secrets and
 * credential providers write them: `registry.example.com:5000/team`, `*.registry.io`. Pure.
 *
 * `*`, `?` and `[…]` stand for parts of one label of the host name, never for a dot; ports must be equal, one
 * that is absent included; the path is a prefix. Patterns may come from anybody, so matching takes time in
 * proportion to their length, whatever they say.
 */

export interface RegistryPattern {
  /** Without scheme; sorting by it puts longer paths of one host behind shorter ones. */
  readonly key: string;
  readonly labels: readonly string[];
  readonly port: string;
  /** Empty, or with its leading slash. */
  readonly path: string;
}

/** Reads a pattern; undefined when it is no `[scheme://]host[:port][/path]`. */
export function parseRegistryPattern(text: string): RegistryPattern | undefined {
  const parts = /^(?:[a-z][a-z0-9+.-]*:\/\/)?([^\s/@:]+|\[[0-9a-fA-F:.]+\])(?::(\d+))?(\/[^\s]*)?$/i.exec(
    text,
  );
  if (!parts) return undefined;
  const [, host = '', port = '', path = ''] = parts;
  return {
    key: `${host}${port && `:${port}`}${path}`,
    // An address is one label: its dots and colons divide nothing that could stand for something else.
    labels: host.startsWith('[') ? [host] : host.split('.'),
    port,
    path: path === '/' ? '' : path,
  };
}

/**
 * A key of Docker's configuration: `/v1/` and `/v2/` at the end of an address are the registry's protocol,
 * not part of an image's name.
 */
export function parseDockerKey(text: string): RegistryPattern | undefined {
  const pattern = parseRegistryPattern(text);
  const versioned = pattern && /^(.*?)\/v[12](\/.*)$/.exec(pattern.key);
  if (!pattern || !versioned || versioned[1]?.includes('/')) return pattern;
  return parseRegistryPattern(`${versioned[1]}${versioned[2] === '/' ? '' : versioned[2]}`);
}

/** Whether a pattern covers an image's full name (`docker.io/library/nginx`, without tag). */
export function coversImage(pattern: RegistryPattern, repository: string): boolean {
  const image = parseRegistryPattern(repository);
  return (
    image !== undefined &&
    image.port === pattern.port &&
    image.labels.length === pattern.labels.length &&
    image.path.startsWith(pattern.path) &&
    pattern.labels.every((label, index) => matchesLabel(label, image.labels[index] ?? ''))
  );
}

type Piece = 'any' | ((character: string) => boolean);

function matchesLabel(pattern: string, label: string): boolean {
  if (pattern === label) return true;
  const pieces = piecesOf(pattern);
  if (!pieces) return false;
  // Going back to the last `*` is enough: what it leaves to later ones can only be longer.
  let [piece, at, lastAny, resumeAt] = [0, 0, -1, 0];
  while (at < label.length) {
    const current = pieces[piece];
    if (current === 'any') {
      lastAny = piece++;
      resumeAt = at;
    } else if (current?.(label.charAt(at))) {
      piece++;
      at++;
    } else if (lastAny >= 0) {
      piece = lastAny + 1;
      at = ++resumeAt;
    } else return false;
  }
  return pieces.slice(piece).every((rest) => rest === 'any');
}

/** Undefined for a pattern that is broken, which matches nothing. */
function piecesOf(pattern: string): Piece[] | undefined {
  const pieces: Piece[] = [];
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern.charAt(at);
    if (character === '*') pieces.push('any');
    else if (character === '?') pieces.push(() => true);
    else if (character === '[') {
      const end = pattern.indexOf(']', at + 2);
      if (end === -1) return undefined;
      pieces.push(oneOf(pattern.slice(at + 1, end)));
      at = end;
    } else if (character === '\\') {
      const literal = pattern.charAt(++at);
      if (literal === '') return undefined;
      pieces.push((other) => other === literal);
    } else pieces.push((other) => other === character);
  }
  return pieces;
}

/** The inside of `[…]`: characters and ranges, all others after `^`. */
function oneOf(inside: string): (character: string) => boolean {
  const isNegated = inside.startsWith('^');
  const list = isNegated ? inside.slice(1) : inside;
  const ranges: [string, string][] = [];
  for (let at = 0; at < list.length; at++) {
    const low = list.charAt(at);
    const isRange = list.charAt(at + 1) === '-' && at + 2 < list.length;
    ranges.push([low, isRange ? list.charAt(at + 2) : low]);
    if (isRange) at += 2;
  }
  return (character) => ranges.some(([low, high]) => low <= character && character <= high) !== isNegated;
}
