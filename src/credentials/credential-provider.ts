/**
 * One credential provider plugin: a program that is handed an image on its standard input and answers
 * credentials (the exec protocol of `credentialprovider.kubelet.k8s.io`). Answers are kept as long as they
 * say, and calls for the same image at the same time share one run.
 */
import { join } from 'node:path';
import type { Clock } from '../concurrency/clock.ts';
import { SingleFlight } from '../concurrency/single-flight.ts';
import { DurationError, parseDuration } from '../kubernetes/duration.ts';
import { stableJson } from '../kubernetes/hash.ts';
import { isObject } from '../kubernetes/json-object.ts';
import type { CredentialProvider } from './credential-provider-config.ts';
import { PluginProcessError, type PluginRun, runPlugin } from './plugin-process.ts';
import {
  type CredentialOrigin,
  isEmptyCredential,
  type PullCredential,
  pullCredential,
  registryCredential,
} from './registry-credential.ts';
import { type KeyringEntry, RegistryKeyring } from './registry-keyring.ts';
import { coversImage, parseRegistryPattern, type RegistryPattern } from './registry-pattern.ts';

/** A plugin gave no usable answer. The message never quotes an answer: it may hold a password. */
export class CredentialProviderError extends Error {
  override readonly name = 'CredentialProviderError';
}

/** Whose image is pulled; what a token is asked for. */
export interface PullingPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly serviceAccountName?: string | undefined;
}

/** Asks the API server about service accounts; declared here, implemented where there is an API server. */
export interface ServiceAccountTokens {
  account(
    namespace: string,
    name: string,
  ): Promise<{ readonly uid: string; readonly annotations: Readonly<Record<string, string>> }>;
  /** A token bound to the pod, for an audience. */
  token(pod: PullingPod, audience: string): Promise<string>;
}

export interface CredentialPluginOptions {
  readonly provider: CredentialProvider;
  readonly binDirectory: string;
  readonly clock: Clock;
  /** Environment that `env` of the provider is added to. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly serviceAccounts?: ServiceAccountTokens | undefined;
  /** Runs the program; tests put their own here. */
  readonly run?: (run: PluginRun, signal?: AbortSignal) => Promise<string>;
  /** Told the duration of each run. */
  readonly onRun?: (durationMs: number) => void;
}

const timeoutMs = 60_000;
/** Answers whose time is over are thrown away this often. */
const purgeEveryMs = 15 * 60_000;

interface Answer {
  readonly keyring: RegistryKeyring;
  readonly origin: CredentialOrigin;
  readonly expiresAt: number;
}

/** On whose behalf the plugin is asked. */
interface Caller {
  readonly origin: CredentialOrigin;
  /** Divides the kept answers of callers that must not see each other's. */
  readonly cacheScope: string;
  readonly request: {
    readonly serviceAccountToken?: string;
    readonly serviceAccountAnnotations?: Readonly<Record<string, string>>;
  };
}

export class CredentialPlugin {
  readonly name: string;
  readonly #options: CredentialPluginOptions;
  readonly #patterns: readonly RegistryPattern[];
  readonly #answers = new Map<string, Answer>();
  readonly #flights = new SingleFlight<Answer>();
  #nextPurge: number;

  constructor(options: CredentialPluginOptions) {
    this.#options = options;
    this.name = options.provider.name;
    this.#patterns = options.provider.matchImages
      .map(parseRegistryPattern)
      .filter((pattern) => pattern !== undefined);
    this.#nextPurge = options.clock.now() + purgeEveryMs;
  }

  /**
   * Credentials for an image, given by its full name without tag. Throws {@link CredentialProviderError}.
   * A caller that gives up does not end the run: others may wait for it, and it ends in a minute.
   */
  async credentialsFor(repository: string, pod?: PullingPod): Promise<PullCredential[]> {
    if (!this.#patterns.some((pattern) => coversImage(pattern, repository))) return [];
    const caller = await this.#caller(pod);
    if (caller === undefined) return [];
    const now = this.#options.clock.now();
    this.#purge(now);
    const known = cacheKeys(repository)
      .map((key) => this.#answers.get(`${caller.cacheScope} ${key}`))
      .find((answer) => answer !== undefined && answer.expiresAt > now);
    const answer =
      known ??
      (await this.#flights.run(`${caller.cacheScope} ${repository}`, () => this.#ask(repository, caller)));
    return answer.keyring.lookup(repository).map((credential) => pullCredential(credential, answer.origin));
  }

  /** Undefined when the plugin is not meant for this pod. */
  async #caller(pod: PullingPod | undefined): Promise<Caller | undefined> {
    const { provider, serviceAccounts } = this.#options;
    const { tokenAttributes } = provider;
    const ofNode: Caller = { origin: { kind: 'node' }, cacheScope: 'node', request: {} };
    if (!tokenAttributes) return ofNode;
    const {
      serviceAccountTokenAudience: audience = '',
      cacheType,
      requireServiceAccount = false,
      requiredServiceAccountAnnotationKeys: requiredKeys = [],
      optionalServiceAccountAnnotationKeys: optionalKeys = [],
    } = tokenAttributes;
    if (!pod?.serviceAccountName) return requireServiceAccount ? undefined : ofNode;
    if (!serviceAccounts) {
      throw new CredentialProviderError(
        `credential provider ${this.name} wants a token of service account ` +
          `${pod.namespace}/${pod.serviceAccountName}, which only an API server issues, and this node has none; ` +
          'take tokenAttributes out of its configuration or give the node a kubeconfig',
      );
    }
    const { namespace, serviceAccountName: name } = pod;
    const [{ uid, annotations }, token] = await Promise.all([
      serviceAccounts.account(namespace, name),
      serviceAccounts.token(pod, audience),
    ]);
    const missing = requiredKeys.filter((key) => annotations[key] === undefined);
    // The plugin is for service accounts that say so by their annotations; this one does not.
    if (missing.length > 0) return undefined;
    const shown = Object.fromEntries(
      [...requiredKeys, ...optionalKeys].flatMap((key) =>
        annotations[key] === undefined ? [] : [[key, annotations[key]]],
      ),
    );
    return {
      origin: { kind: 'serviceAccount', uid, namespace, name },
      cacheScope: stableJson([namespace, name, uid, shown, cacheType === 'Token' ? token : '']),
      request: {
        serviceAccountToken: token,
        ...(Object.keys(shown).length > 0 && { serviceAccountAnnotations: shown }),
      },
    };
  }

  async #ask(repository: string, caller: Caller): Promise<Answer> {
    const { provider, binDirectory, clock, environment, run = runPlugin, onRun } = this.#options;
    const { name, apiVersion, args = [], env = [], defaultCacheDuration } = provider;
    const began = clock.now();
    let text: string;
    try {
      text = await run({
        path: join(binDirectory, name),
        args,
        env: {
          ...environment,
          ...Object.fromEntries(env.map((variable) => [variable.name, variable.value])),
        },
        input: JSON.stringify({
          kind: 'CredentialProviderRequest',
          apiVersion,
          image: repository,
          ...caller.request,
        }),
        timeoutMs,
      });
    } catch (cause) {
      if (!(cause instanceof PluginProcessError)) throw cause;
      throw new CredentialProviderError(`credential provider ${name}: ${cause.message}`, { cause });
    } finally {
      onRun?.(clock.now() - began);
    }
    let response: ProviderResponse;
    try {
      response = parseProviderResponse(text, apiVersion);
    } catch (cause) {
      if (!(cause instanceof ResponseError)) throw cause;
      throw new CredentialProviderError(`credential provider ${name}: its answer ${cause.message}`, {
        cause,
      });
    }
    const keptMs = response.cacheMs ?? parseDuration(defaultCacheDuration);
    const now = clock.now();
    const answer = {
      keyring: new RegistryKeyring(response.entries),
      origin: caller.origin,
      expiresAt: now + keptMs,
    };
    const [image = '', registry = '', global = ''] = cacheKeys(repository);
    const key = { Image: image, Registry: registry, Global: global }[response.cacheKeyType];
    if (keptMs > 0) this.#answers.set(`${caller.cacheScope} ${key}`, answer);
    return answer;
  }

  #purge(now: number): void {
    if (now < this.#nextPurge) return;
    this.#nextPurge = now + purgeEveryMs;
    for (const [key, { expiresAt }] of this.#answers) if (expiresAt <= now) this.#answers.delete(key);
  }
}

/** Keys for `Image`, `Registry` and `Global`, in this order, told apart by their beginning. */
function cacheKeys(repository: string): string[] {
  return [`image ${repository}`, `registry ${repository.split('/')[0]}`, 'global'];
}

class ResponseError extends Error {}

interface ProviderResponse {
  readonly cacheKeyType: 'Image' | 'Registry' | 'Global';
  /** Undefined: the provider's default. */
  readonly cacheMs: number | undefined;
  readonly entries: KeyringEntry[];
}

const cacheKeyTypes = ['Image', 'Registry', 'Global'] as const;

function parseProviderResponse(text: string, apiVersion: string): ProviderResponse {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    throw new ResponseError('is not JSON');
  }
  if (!isObject(document)) throw new ResponseError('is no JSON object');
  if (document['kind'] !== 'CredentialProviderResponse') {
    throw new ResponseError('must have kind: CredentialProviderResponse');
  }
  if (document['apiVersion'] !== apiVersion) {
    throw new ResponseError(`must have the apiVersion it was asked in, ${apiVersion}`);
  }
  const cacheKeyType = cacheKeyTypes.find((type) => type === document['cacheKeyType']);
  if (!cacheKeyType) throw new ResponseError(`must have a cacheKeyType of ${cacheKeyTypes.join(', ')}`);
  const auth = document['auth'] ?? {};
  if (!isObject(auth)) throw new ResponseError('must have an object in auth');
  const entries: KeyringEntry[] = [];
  for (const [key, value] of Object.entries(auth)) {
    const pattern = parseRegistryPattern(key);
    if (!pattern)
      throw new ResponseError(`has ${JSON.stringify(key)} in auth, which is no pattern for images`);
    const { username = '', password = '' } = isObject(value) ? value : {};
    if (typeof username !== 'string' || typeof password !== 'string') {
      throw new ResponseError(`must have texts for username and password of ${key}`);
    }
    const credential = registryCredential({ username, password });
    if (!isEmptyCredential(credential)) entries.push({ pattern, credential });
  }
  return { cacheKeyType, cacheMs: cacheMsOf(document['cacheDuration']), entries };
}

function cacheMsOf(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  try {
    if (typeof value === 'string') return parseDuration(value);
  } catch (error) {
    if (!(error instanceof DurationError)) throw error;
  }
  throw new ResponseError('must have a duration such as "10m" in cacheDuration');
}
