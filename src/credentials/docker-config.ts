/**
 * Credentials in Docker's files: `config.json` (`{"auths": {…}}`) and its older form `.dockercfg` (the inner
 * object alone). Reading never fails a pull: what is not understood is told once and left out.
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isObject } from '../kubernetes/json-object.ts';
import type { Logger } from '../telemetry/logger.ts';
import { isEmptyCredential, type RegistryCredential, registryCredential } from './registry-credential.ts';
import { type KeyringEntry, RegistryKeyring } from './registry-keyring.ts';
import { parseDockerKey } from './registry-pattern.ts';

/** The text is no file of Docker's credentials. The message never quotes it: it may hold a password. */
export class DockerConfigError extends Error {
  override readonly name = 'DockerConfigError';
}

interface DockerCredentials {
  readonly entries: KeyringEntry[];
  /** What was left out, one text each, without secrets. */
  readonly problems: string[];
}

/** Reads one file's text. Throws {@link DockerConfigError} when nothing of it is of use. */
export function parseDockerConfig(text: string, form: 'config.json' | '.dockercfg'): DockerCredentials {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    throw new DockerConfigError('it is not JSON');
  }
  if (!isObject(document)) throw new DockerConfigError('it holds no JSON object');
  const auths = form === 'config.json' ? document['auths'] : document;
  if (auths === undefined || auths === null) return { entries: [], problems: [] };
  if (!isObject(auths)) throw new DockerConfigError('"auths" is no object');
  const entries: KeyringEntry[] = [];
  const problems: string[] = [];
  for (const [registry, value] of Object.entries(auths)) {
    const pattern = parseDockerKey(registry);
    if (!pattern) problems.push(`${JSON.stringify(registry)} is no address of a registry`);
    else {
      const credential = credentialOf(value);
      if (typeof credential === 'string') problems.push(`${registry}: ${credential}`);
      else if (!isEmptyCredential(credential)) entries.push({ pattern, credential });
    }
  }
  return { entries, problems };
}

/** A credential, or what is wrong with it. `auth` wins over `username` and `password`. */
function credentialOf(value: unknown): RegistryCredential | string {
  if (!isObject(value)) return 'must be an object';
  const parts = ['username', 'password', 'auth', 'identitytoken', 'registrytoken'].map(
    (name) => value[name] ?? '',
  );
  if (!parts.every((part) => typeof part === 'string')) return 'every part must be a text';
  const [username = '', password = '', auth = '', identityToken = '', registryToken = ''] = parts;
  const tokens = { identityToken, registryToken };
  if (auth === '') return registryCredential({ username, password, ...tokens });
  if (!/^[A-Za-z0-9+/_-]*={0,2}\s*$/.test(auth)) return '"auth" is no base64';
  const decoded = Buffer.from(auth, 'base64').toString('utf8').replace(/\0+$/, '');
  const colon = decoded.indexOf(':');
  if (colon === -1) return '"auth" must be base64 of <username>:<password>';
  return registryCredential({
    username: decoded.slice(0, colon),
    password: decoded.slice(colon + 1),
    ...tokens,
  });
}

export interface DockerConfigFilesOptions {
  /** The kubelet's root directory: the first place that is looked at. */
  readonly rootDirectory: string;
  /** `$HOME`; absent when there is none. */
  readonly homeDirectory?: string | undefined;
  readonly logger: Logger;
}

/** Nobody has more credentials than this; a larger file is something else. */
const largestFile = 4 * 1024 * 1024;

/**
 * The node's own credentials. Files are looked at whenever credentials are asked for and read only when they
 * changed, so `docker login` on the node works at once.
 *
 * Differs from the kubelet: it keeps what it read for five minutes; and it also looks into its working
 * directory, where a file of that name may belong to anybody.
 */
export class DockerConfigFiles {
  readonly #candidates: readonly { readonly path: string; readonly form: 'config.json' | '.dockercfg' }[];
  readonly #logger: Logger;
  #read: { readonly path: string; readonly version: string; readonly keyring: RegistryKeyring } | undefined;
  #told = new Map<string, string>();

  constructor({ rootDirectory, homeDirectory, logger }: DockerConfigFilesOptions) {
    const home = homeDirectory ? [homeDirectory] : [];
    const dockerDirectories = [rootDirectory, ...home.map((path) => join(path, '.docker')), '/.docker'];
    this.#candidates = [
      ...dockerDirectories.map((path) => ({ path: join(path, 'config.json'), form: 'config.json' as const })),
      ...[rootDirectory, ...home, '/'].map((path) => ({
        path: join(path, '.dockercfg'),
        form: '.dockercfg' as const,
      })),
    ];
    this.#logger = logger;
  }

  /** Credentials of the first file that can be read. Small files on a local disk: read synchronously. */
  lookup(repository: string): RegistryCredential[] {
    for (const { path, form } of this.#candidates) {
      const version = this.#versionOf(path);
      if (version === undefined) continue;
      if (this.#read?.path === path && this.#read.version === version)
        return this.#read.keyring.lookup(repository);
      try {
        const { entries, problems } = parseDockerConfig(readFileSync(path, 'utf8'), form);
        for (const problem of problems) this.#tell(path, version, `${problem}; left out`);
        this.#read = { path, version, keyring: new RegistryKeyring(entries) };
        return this.#read.keyring.lookup(repository);
      } catch (error) {
        this.#tell(path, version, (error as Error).message);
      }
    }
    return [];
  }

  #versionOf(path: string): string | undefined {
    try {
      const status = statSync(path, { bigint: true });
      const { mtimeNs, ctimeNs, size, ino } = status;
      if (!status.isFile()) return undefined;
      if (size > largestFile) {
        this.#tell(path, String(ctimeNs), `it is larger than ${largestFile} bytes`);
        return undefined;
      }
      return [mtimeNs, ctimeNs, size, ino].join();
    } catch {
      return undefined;
    }
  }

  /** Once for each version of a file. */
  #tell(path: string, version: string, problem: string): void {
    const text = `${version} ${problem}`;
    if (this.#told.get(path) === text) return;
    this.#told.set(path, text);
    this.#logger.warn('Registry credentials cannot be used; correct the file or remove it', {
      path,
      problem,
    });
  }
}
