/**
 * What this server asks of the API server to know its callers: whose token this is, and who may do what. The
 * agent carries it out with its API client.
 */
import type { NodeSubresource } from './access.ts';
import type { User } from './route.ts';

/** Of the node itself: `resource: nodes`, `apiVersion: v1`, its own name. */
export interface AccessAttributes {
  readonly user: User;
  readonly verb: string;
  readonly subresource: NodeSubresource;
  readonly nodeName: string;
}

export interface Reviews {
  /** `authentication.k8s.io/v1` TokenReview: whose token it is; undefined: nobody's. Rejects when it cannot be known. */
  tokenReview(token: string, signal: AbortSignal): Promise<User | undefined>;
  /** `authorization.k8s.io/v1` SubjectAccessReview. Rejects when it cannot be known. */
  accessReview(
    attributes: AccessAttributes,
    signal: AbortSignal,
  ): Promise<{ readonly allowed: boolean; readonly reason?: string }>;
}
