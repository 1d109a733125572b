/**
 * What a container's environment takes from API objects and env files, fetched before the environment is
 * worked out, so that working it out stays pure.
 */
import { EnvironmentError, type EnvironmentSources } from '../kubernetes/environment.ts';
import type { Container, EphemeralContainer, Pod } from '../kubernetes/types.ts';
import { secretTexts } from './object-entries.ts';
import { ObjectUnavailableError } from './object-types.ts';
import type { ReferencedObjects } from './referenced-objects.ts';
import { containerReferences, referenceKey } from './references.ts';

export interface EnvironmentObjectsRequest {
  readonly pod: Pod;
  readonly container: Container | EphemeralContainer;
  /** Absent without an API server: every object is missing then. */
  readonly objects: Pick<ReferencedObjects, 'get'> | undefined;
  /** The text of a file in a volume of the pod; `undefined` when there is none. */
  readonly readFile: (volume: string, path: string, signal: AbortSignal) => Promise<string | undefined>;
}

/**
 * The sources for exactly this container. Rejects with {@link EnvironmentError} when the API server cannot
 * say whether an object exists, even for an optional one: a guess would start the container with the wrong
 * environment.
 */
export async function environmentObjects(
  { pod, container, objects, readFile }: EnvironmentObjectsRequest,
  signal: AbortSignal,
): Promise<EnvironmentSources> {
  const { namespace } = pod.metadata;
  const data = new Map<string, Readonly<Record<string, string>>>();
  const files = new Map<string, string>();
  const fileKey = (volume: string, path: string) => `${volume}/${path}`;
  try {
    await Promise.all([
      ...containerReferences(namespace, container).map(async (reference) => {
        const { kind, name } = reference;
        if (kind === 'configMap') {
          const configMap = await objects?.get(kind, namespace, name, signal);
          if (configMap) data.set(referenceKey(reference), configMap.data ?? {});
        } else {
          const secret = await objects?.get(kind, namespace, name, signal);
          if (secret) data.set(referenceKey(reference), secretTexts(secret));
        }
      }),
      ...(container.env ?? []).map(async ({ valueFrom }) => {
        const wanted = valueFrom?.fileKeyRef;
        if (!wanted) return;
        const text = await readFile(wanted.volumeName, wanted.path, signal);
        if (text !== undefined) files.set(fileKey(wanted.volumeName, wanted.path), text);
      }),
    ]);
  } catch (error) {
    if (!(error instanceof ObjectUnavailableError)) throw error;
    throw new EnvironmentError(error.message, { cause: error });
  }
  return {
    configMap: (ns, name) => data.get(referenceKey({ kind: 'configMap', namespace: ns, name })),
    secret: (ns, name) => data.get(referenceKey({ kind: 'secret', namespace: ns, name })),
    envFile: (volume, path) => files.get(fileKey(volume, path)),
  };
}
