/** Credentials in Secrets, as `imagePullSecrets` of a pod names them. Pure. */
import { DockerConfigError, parseDockerConfig } from './docker-config.ts';
import { type PullCredential, pullCredential } from './registry-credential.ts';
import { RegistryKeyring } from './registry-keyring.ts';

/** The part of a Secret that pulling needs; `data` is base64, as in the API. */
export interface PullSecret {
  readonly metadata: { readonly name: string; readonly namespace: string; readonly uid: string };
  readonly type?: string | undefined;
  readonly data?: Readonly<Record<string, string>> | undefined;
}

/** Under which key each type of Secret has its credentials. */
const contents = [
  { type: 'kubernetes.io/dockerconfigjson', key: '.dockerconfigjson', form: 'config.json' },
  { type: 'kubernetes.io/dockercfg', key: '.dockercfg', form: '.dockercfg' },
] as const;

/**
 * Credentials for an image among the secrets of a pod, in their order. `problem` hears of secrets that hold
 * none; their content is never quoted.
 */
export function secretCredentials(
  repository: string,
  secrets: readonly PullSecret[],
  problem: (secret: string, text: string) => void,
): PullCredential[] {
  return secrets.flatMap((secret) => {
    const { name, namespace, uid } = secret.metadata;
    const content = contents.find(
      ({ type, key }) => secret.type === type && secret.data?.[key] !== undefined,
    );
    if (!content) return [];
    try {
      const text = Buffer.from(secret.data?.[content.key] ?? '', 'base64').toString('utf8');
      const { entries, problems } = parseDockerConfig(text, content.form);
      for (const one of problems) problem(`${namespace}/${name}`, one);
      return new RegistryKeyring(entries)
        .lookup(repository)
        .map((credential) => pullCredential(credential, { kind: 'secret', uid, namespace, name }));
    } catch (error) {
      if (!(error instanceof DockerConfigError)) throw error;
      problem(`${namespace}/${name}`, error.message);
      return [];
    }
  });
}
