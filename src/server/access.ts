/**
 * What a request is about, in the words of authorization: a verb, and the sub-resources of this node that
 * allow it. It follows from method and path alone, before anybody knows whether there is such an endpoint.
 */
import type { RequestTarget } from './request-target.ts';

export type NodeSubresource =
  | 'pods'
  | 'healthz'
  | 'configz'
  | 'statusz'
  | 'metrics'
  | 'stats'
  | 'log'
  | 'checkpoint'
  | 'proxy';

export interface Access {
  /** `get`, `create`, `update`, `patch`, `delete`; empty for any other method. */
  readonly verb: string;
  /** Tried in this order; the first that is allowed is enough. */
  readonly subresources: readonly [NodeSubresource, ...NodeSubresource[]];
}

const verbs: Readonly<Record<string, string>> = {
  GET: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

/** By the first segment of the path. */
const bySegment: ReadonlyMap<string, Access['subresources']> = new Map<string, Access['subresources']>([
  ['pods', ['pods', 'proxy']],
  ['runningpods', ['pods', 'proxy']],
  ['healthz', ['healthz', 'proxy']],
  ['configz', ['configz', 'proxy']],
  ['flagz', ['configz']],
  ['statusz', ['statusz']],
  ['metrics', ['metrics']],
  ['stats', ['stats']],
  ['logs', ['log']],
  ['checkpoint', ['checkpoint']],
]);

/** Everything that is not named takes the right to everything: `nodes/proxy`. */
export function accessOf(method: string, { segments, isPlain }: RequestTarget): Access {
  const named = isPlain ? bySegment.get(segments[0] ?? '') : undefined;
  return { verb: verbs[method] ?? '', subresources: named ?? ['proxy'] };
}
