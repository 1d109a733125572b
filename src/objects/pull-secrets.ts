/** The secrets that a pod's images are pulled with (`imagePullSecrets`). */
import type { Pod } from '../kubernetes/types.ts';
import { errorText } from '../telemetry/error-text.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { ReferencedObjects } from './referenced-objects.ts';

/** What a keyring needs of a Secret; `data` is base64. */
export interface PullSecretObject {
  readonly metadata: { readonly name: string; readonly namespace: string; readonly uid: string };
  readonly type?: string | undefined;
  readonly data?: Readonly<Record<string, string>> | undefined;
}

export interface PullSecrets {
  /** In the order of the pod. */
  readonly secrets: readonly PullSecretObject[];
  /** Names of those that could not be had. */
  readonly missing: readonly string[];
}

/**
 * The pull secrets of a pod. One that is missing is no error, since the image may need none;
 * {@link missingPullSecretsMessage} is what the pod is told then.
 */
export async function pullSecrets(
  pod: Pod,
  { objects, logger }: { objects: Pick<ReferencedObjects, 'get'>; logger: Logger },
  signal: AbortSignal,
): Promise<PullSecrets> {
  const { namespace } = pod.metadata;
  const names = (pod.spec.imagePullSecrets ?? []).flatMap(({ name }) => (name ? [name] : []));
  const found = await Promise.all(
    names.map(async (name) => {
      try {
        return await objects.get('secret', namespace, name, signal);
      } catch (error) {
        signal.throwIfAborted();
        logger.warn('A pull secret cannot be read', {
          secret: `${namespace}/${name}`,
          err: errorText(error),
        });
        return undefined;
      }
    }),
  );
  return {
    secrets: found.flatMap((secret, index) =>
      secret === undefined
        ? []
        : [
            {
              metadata: { name: names[index]!, namespace, uid: secret.metadata?.uid ?? '' },
              type: secret.type,
              data: secret.data,
            },
          ],
    ),
    missing: names.filter((_, index) => found[index] === undefined),
  };
}

/** Reason of the event for {@link missingPullSecretsMessage}. */
export const missingPullSecretsReason = 'FailedToRetrieveImagePullSecret';

export function missingPullSecretsMessage(missing: readonly string[]): string {
  return `Unable to retrieve some image pull secrets (${missing.join(', ')}); attempting to pull the image may not succeed.`;
}
