/** What a request is about, as authorization and audit name it. Pure. */
export interface RequestSubject {
  readonly verb: 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection';
  /** With the subresource: `pods/status`. The path itself when it is no resource's. */
  readonly resource: string;
  readonly namespace?: string;
  readonly name?: string;
}

/** Of `/api/v1/…`, `/apis/<group>/<version>/…` and anything else. */
export function requestSubject(method: string, path: string, watch = false): RequestSubject {
  const parts = path.split('/').filter((part) => part !== '');
  const versionAt = parts[0] === 'api' ? 1 : parts[0] === 'apis' ? 2 : -1;
  if (versionAt < 0 || parts.length <= versionAt + 1)
    return { verb: watch ? 'watch' : verbOf(method, true), resource: path };
  let rest = parts.slice(versionAt + 1);
  let namespace: string | undefined;
  // `namespaces/x` alone is the namespace itself, and so are its subresources.
  if (rest[0] === 'namespaces' && rest.length > 2 && rest[2] !== 'status' && rest[2] !== 'finalize') {
    namespace = rest[1];
    rest = rest.slice(2);
  }
  const [kind = path, name, ...sub] = rest;
  return {
    verb: watch ? 'watch' : verbOf(method, name !== undefined),
    resource: [kind, ...sub].join('/'),
    ...(namespace !== undefined && { namespace }),
    ...(name !== undefined && { name }),
  };
}

function verbOf(method: string, named: boolean): RequestSubject['verb'] {
  switch (method) {
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return named ? 'delete' : 'deletecollection';
    default:
      return named ? 'get' : 'list';
  }
}

/** For messages: `patch pods/status default/web`. */
export function subjectText({ verb, resource, namespace, name }: RequestSubject): string {
  const object = [namespace, name].filter((part) => part !== undefined).join('/');
  return object === '' ? `${verb} ${resource}` : `${verb} ${resource} ${object}`;
}
