/** Asks the API server about callers of the node's API: TokenReview and SubjectAccessReview. */
import type { ApiClient } from '../client/api-client.ts';
import type { AccessAttributes, Reviews } from '../server/reviews.ts';
import type { User } from '../server/route.ts';

interface TokenReview {
  readonly status?: {
    readonly authenticated?: boolean;
    readonly user?: {
      readonly username?: string;
      readonly uid?: string;
      readonly groups?: readonly string[];
      readonly extra?: Readonly<Record<string, readonly string[]>>;
    };
  };
}

interface SubjectAccessReview {
  readonly status?: { readonly allowed?: boolean; readonly denied?: boolean; readonly reason?: string };
}

export function apiReviews(api: Pick<ApiClient, 'request'>): Reviews {
  return {
    async tokenReview(token, signal) {
      const { status } = await api.request<TokenReview>({
        method: 'POST',
        path: '/apis/authentication.k8s.io/v1/tokenreviews',
        body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } },
        signal,
      });
      return status?.authenticated === true ? userOf(status.user ?? {}) : undefined;
    },
    async accessReview(attributes, signal) {
      const { status = {} } = await api.request<SubjectAccessReview>({
        method: 'POST',
        path: '/apis/authorization.k8s.io/v1/subjectaccessreviews',
        body: {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SubjectAccessReview',
          spec: reviewSpec(attributes),
        },
        signal,
      });
      return {
        allowed: status.allowed === true && status.denied !== true,
        ...(status.reason !== undefined && { reason: status.reason }),
      };
    },
  };
}

/** Undefined for a review that names nobody: a token must not stand for a user without a name. */
function userOf({
  username,
  uid,
  groups = [],
  extra,
}: NonNullable<NonNullable<TokenReview['status']>['user']>): User | undefined {
  if (!username) return undefined;
  return { name: username, groups, ...(uid && { uid }), ...(extra && { extra }) };
}

function reviewSpec({ user, verb, subresource, nodeName }: AccessAttributes) {
  return {
    user: user.name,
    groups: user.groups,
    ...(user.uid && { uid: user.uid }),
    ...(user.extra && { extra: user.extra }),
    resourceAttributes: {
      verb,
      version: 'v1',
      resource: 'nodes',
      subresource,
      name: nodeName,
    },
  };
}
