/**
 * Finds the route of a request. A literal segment counts more than a `{name}`, an exact path more than one for
 * everything below, a longer one more than a shorter.
 */

import type { RequestTarget } from './request-target.ts';
import type { NodeRoute } from './route.ts';

export interface FoundRoute {
  readonly route: NodeRoute;
  readonly parameters: Readonly<Record<string, string>>;
  readonly rest: string;
}

/** `allow`: the path is known, with these methods. */
export type Finding = FoundRoute | { readonly allow: readonly string[] } | undefined;

interface Pattern {
  readonly route: NodeRoute;
  readonly segments: readonly string[];
  readonly isPrefix: boolean;
}

interface Match {
  readonly pattern: Pattern;
  readonly parameters: Record<string, string>;
  readonly rest: string;
}

export class RouteTable {
  readonly #patterns: readonly Pattern[];

  constructor(routes: readonly NodeRoute[]) {
    this.#patterns = routes
      .map((route) => {
        const isPrefix = route.path.endsWith('/') && route.path !== '/';
        const path = isPrefix ? route.path.slice(1, -1) : route.path.slice(1);
        return { route, segments: path.split('/'), isPrefix };
      })
      .sort(bySpecificity);
  }

  find(method: string, target: RequestTarget): Finding {
    if (!target.isPlain) return undefined;
    const allow = new Set<string>();
    const asked = method === 'HEAD' ? 'GET' : method;
    let known: Pattern | undefined;
    for (const pattern of this.#patterns) {
      // Only routes of the same path may answer another method.
      if (known && bySpecificity(known, pattern) !== 0) break;
      const match = matchOf(pattern, target.segments);
      if (!match) continue;
      const { methods } = pattern.route;
      if (methods === undefined || (methods as readonly string[]).includes(asked))
        return { route: pattern.route, parameters: match.parameters, rest: match.rest };
      known = pattern;
      for (const one of methods) allow.add(one);
    }
    return known && { allow: [...allow] };
  }
}

function matchOf(pattern: Pattern, asked: readonly string[]): Match | undefined {
  const { segments, isPrefix } = pattern;
  // `/logs/` is for `/logs/` and below, not for `/logs`.
  if (isPrefix ? asked.length <= segments.length : asked.length !== segments.length) return undefined;
  const parameters: Record<string, string> = {};
  for (const [index, segment] of segments.entries()) {
    const value = asked[index] ?? '';
    if (!isParameter(segment)) {
      if (segment !== value) return undefined;
    } else if (value === '') return undefined;
    else parameters[segment.slice(1, -1)] = value;
  }
  return { pattern, parameters, rest: isPrefix ? asked.slice(segments.length).join('/') : '' };
}

const isParameter = (segment: string) => segment.startsWith('{');

/** Most specific first; 0 for patterns that match the same paths. */
function bySpecificity(a: Pattern, b: Pattern): number {
  return (
    Number(a.isPrefix) - Number(b.isPrefix) ||
    b.segments.length - a.segments.length ||
    compare(shape(a), shape(b))
  );
}

/** Parameters sort behind every literal. */
const shape = ({ segments }: Pattern) =>
  segments.map((segment) => (isParameter(segment) ? '\uffff' : segment)).join('/');

const compare = (a: string, b: string) => (a < b ? -1 : Number(a > b));
