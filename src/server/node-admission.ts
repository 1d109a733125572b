/** The door of the node's API: who are you, then may you; 401 and 403 in a kubelet's words. */
import type { Logger } from '../telemetry/logger.ts';
import { type Access, accessOf } from './access.ts';
import type { Authentication, Credentials } from './authentication.ts';
import type { Authorizer } from './authorization.ts';
import type { AnyRequest } from './request-body.ts';
import type { User } from './route.ts';
import type { Admission } from './router.ts';

export interface NodeAdmissionOptions {
  readonly authentication: Authentication;
  readonly authorizer: Authorizer;
  /** What the connection and the headers of a request show. */
  readonly credentialsOf: (request: AnyRequest) => Credentials;
  readonly log: Logger;
}

export function nodeAdmission(options: NodeAdmissionOptions): Admission {
  const { authentication, authorizer, credentialsOf, log } = options;
  return {
    async admit(request, target) {
      const user = await authentication.identify(credentialsOf(request));
      if (!user) return { status: 401, text: 'Unauthorized' };
      const access = accessOf(request.method ?? '', target);
      const decision = await authorizer.decide(user, access);
      switch (decision.outcome) {
        case 'allowed':
          return { user };
        case 'forbidden':
          log.v(2, 'A request was forbidden', { user: user.name, ...access });
          return { status: 403, text: `Forbidden (${described(user, access)})` };
        case 'unknown':
          log.error('Whether a request is allowed could not be found out', decision.cause, {
            user: user.name,
            ...access,
          });
          return { status: 500, text: `Authorization error (${described(user, access)})` };
      }
    },
  };
}

const described = (user: User, { verb, subresources }: Access) =>
  `user=${user.name}, verb=${verb}, resource=nodes, subresource(s)=[${subresources.join(' ')}]`;
