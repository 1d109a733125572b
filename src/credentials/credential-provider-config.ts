/**
 * `--image-credential-provider-config`: which programs may be asked for registry credentials, one file or a
 * directory of files. Everything wrong is reported at once, with file and field, before the agent starts.
 */
import { createHash } from 'node:crypto';
import { accessSync, constants, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import {
  type ConfigurationError,
  describeConfigurationError,
  type FieldPath,
  formatFieldPath,
} from '../config/configuration-error.ts';
import {
  bool,
  type Configured,
  choice,
  duration,
  objects,
  optionalObject,
  required,
  text,
  texts,
} from '../config/field.ts';
import { checkValues, readFields } from '../config/read-fields.ts';
import { parseDurationNanos } from '../kubernetes/duration.ts';
import { checkQualifiedName } from '../kubernetes/names.ts';
import { type JsonObject, parseYaml, YamlError } from '../kubernetes/yaml.ts';
import { parseRegistryPattern } from './registry-pattern.ts';

/** The configuration cannot be used. `errors` has one line for each mistake. */
export class CredentialProviderConfigError extends Error {
  override readonly name = 'CredentialProviderConfigError';
  readonly errors: readonly string[];

  constructor(errors: readonly ConfigurationError[]) {
    const lines = errors.map(describeConfigurationError);
    super(`The image credential providers are not configured correctly: ${lines.join('; ')}`);
    this.errors = lines;
  }
}

const kind = 'CredentialProviderConfig';
const versions = ['v1', 'v1beta1', 'v1alpha1'] as const;
const configVersions = versions.map((version) => `kubelet.config.k8s.io/${version}`);
const protocolVersions = versions.map((version) => `credentialprovider.kubelet.k8s.io/${version}` as const);
const tokenVersion = protocolVersions[0];

const tokenFields = {
  serviceAccountTokenAudience: text('Audience of the token'),
  cacheType: choice('string(enum)', ['Token', 'ServiceAccount'], 'Scope of cached credentials'),
  requireServiceAccount: bool('Run only for pods with a service account', { pointer: true }),
  requiredServiceAccountAnnotationKeys: texts('Annotations that must exist'),
  optionalServiceAccountAnnotationKeys: texts('Annotations passed when present'),
};

const providerFields = {
  name: required(text('Name of the executable')),
  matchImages: required(texts('Images for which it is run')),
  defaultCacheDuration: required(duration('How long an answer is kept that does not say so itself')),
  apiVersion: required(choice('string', protocolVersions, 'Version of the protocol')),
  args: texts('Arguments'),
  env: objects('list(object)', 'Environment beside that of the agent', {
    name: required(text('Name of a variable')),
    value: required(text('Its value')),
  }),
  tokenAttributes: optionalObject('Service account token handed to the program', tokenFields),
};

const configFields = {
  apiVersion: text('Version of the file'),
  kind: text('Kind of the file'),
  providers: objects('list(object)', 'Programs', providerFields),
};

export type CredentialProvider = Configured<typeof providerFields>;

export interface CredentialProviders {
  readonly providers: readonly CredentialProvider[];
  /** `sha256:…` of what the files say, for the metric that tells configurations apart. */
  readonly hash: string;
}

export interface CredentialProviderSource {
  /** A file, or a directory whose `.json`, `.yaml` and `.yml` files count in the order of their names. */
  readonly path: string;
  /** Where the executables are. */
  readonly binDirectory: string;
  /** Gate `KubeletServiceAccountTokenForCredentialProviders`. */
  readonly tokensEnabled: boolean;
}

/** Reads and checks everything. Throws {@link CredentialProviderConfigError}. */
export function readCredentialProviders(source: CredentialProviderSource): CredentialProviders {
  const errors: ConfigurationError[] = [];
  const hash = createHash('sha256');
  const providers: CredentialProvider[] = [];
  const definedIn = new Map<string, string>();
  for (const file of filesOf(source.path, errors)) {
    let content: string;
    try {
      content = readFileSync(file, 'utf8');
    } catch (error) {
      errors.push({ file, message: `cannot be read: ${(error as Error).message}` });
      continue;
    }
    hash.update(content);
    const found = parseCredentialProviders(file, content, source.tokensEnabled);
    errors.push(...found.errors);
    for (const [index, provider] of found.providers.entries()) {
      const field = `providers[${index}].name`;
      const other = definedIn.get(provider.name);
      if (other !== undefined) {
        errors.push({ file, field, message: `${provider.name} is defined already, in ${other}` });
      }
      definedIn.set(provider.name, file);
      const problem = executableProblem(source.binDirectory, provider.name);
      if (problem !== undefined) errors.push({ file, field, message: problem });
      providers.push(provider);
    }
  }
  if (errors.length === 0 && providers.length === 0) {
    errors.push({ file: source.path, field: 'providers', message: 'needs at least one provider' });
  }
  if (errors.length > 0) throw new CredentialProviderConfigError(errors);
  return { providers, hash: `sha256:${hash.digest('hex')}` };
}

function filesOf(path: string, errors: ConfigurationError[]): string[] {
  try {
    if (!statSync(path).isDirectory()) return [path];
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => !entry.isDirectory() && /\.(json|ya?ml)$/.test(entry.name))
      .map(({ name }) => join(path, name))
      .sort();
  } catch (error) {
    const flag = 'image-credential-provider-config';
    errors.push({ flag, message: `${path} cannot be read: ${(error as Error).message}` });
    return [];
  }
}

function executableProblem(binDirectory: string, name: string): string | undefined {
  // A name that leads elsewhere has been reported already.
  if (!isFileName(name)) return undefined;
  const path = join(binDirectory, name);
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile() ? undefined : `${path} is no file`;
  } catch (error) {
    return `${path} cannot be run: ${(error as Error).message}`;
  }
}

/** One file. Pure. */
export function parseCredentialProviders(
  file: string,
  content: string,
  tokensEnabled: boolean,
): { readonly providers: readonly CredentialProvider[]; readonly errors: readonly ConfigurationError[] } {
  const errors: ConfigurationError[] = [];
  let documents: ReturnType<typeof parseYaml>;
  try {
    documents = parseYaml(content).filter(({ value }) => value !== null);
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    return { providers: [], errors: [{ file, line: error.line, message: error.reason }] };
  }
  const [document] = documents;
  const raw = document?.value;
  if (documents.length !== 1 || !document || typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    return { providers: [], errors: [{ file, message: `must hold one ${kind} object` }] };
  }
  const report = (at: FieldPath, message: string) => {
    const line = document.lineOf(at);
    errors.push({ file, ...(line !== undefined && { line }), field: formatFieldPath(at), message });
  };
  if (!configVersions.some((version) => version === raw['apiVersion'])) {
    report(['apiVersion'], `must be one of ${configVersions.join(', ')}`);
  }
  if (raw['kind'] !== kind) report(['kind'], `must be ${kind}`);
  if (errors.length > 0) return { providers: [], errors };

  const values = readFields(configFields, raw, report) as JsonObject & Configured<typeof configFields>;
  checkValues(configFields, values, report);
  const providers = values.providers ?? [];
  if (providers.length === 0 && errors.length === 0) report(['providers'], 'needs at least one provider');
  for (const [index, provider] of providers.entries()) {
    checkProvider(provider, tokensEnabled, (at, message) => report(['providers', index, ...at], message));
  }
  return { providers, errors };
}

type Report = (at: FieldPath, message: string) => void;

function checkProvider(provider: CredentialProvider, tokensEnabled: boolean, report: Report): void {
  const { name, matchImages, defaultCacheDuration, tokenAttributes } = provider;
  if (!isFileName(name)) report(['name'], 'must be the name of a file: without / and space, not . or ..');
  if (matchImages.length === 0) report(['matchImages'], 'needs at least one pattern');
  for (const [index, pattern] of matchImages.entries()) {
    if (pattern.includes('://') || !parseRegistryPattern(pattern)) {
      report(['matchImages', index], 'must be <host>[:<port>][/<path>] without a scheme');
    }
  }
  if (parseDurationNanos(defaultCacheDuration) < 0n) report(['defaultCacheDuration'], 'must not be negative');
  if (tokenAttributes) checkTokenAttributes(provider, tokensEnabled, report);
}

function checkTokenAttributes(
  { apiVersion, tokenAttributes = {} }: CredentialProvider,
  tokensEnabled: boolean,
  report: Report,
): void {
  const at = 'tokenAttributes';
  if (!tokensEnabled) {
    report([at], 'needs the feature gate KubeletServiceAccountTokenForCredentialProviders');
  }
  if (apiVersion !== tokenVersion) report([at], `needs apiVersion: ${tokenVersion}`);
  if (!tokenAttributes.serviceAccountTokenAudience) {
    report([at, 'serviceAccountTokenAudience'], 'is required');
  }
  if (tokenAttributes.cacheType === undefined) report([at, 'cacheType'], 'is required');
  if (tokenAttributes.requireServiceAccount === undefined)
    report([at, 'requireServiceAccount'], 'is required');
  const requiredKeys = tokenAttributes.requiredServiceAccountAnnotationKeys ?? [];
  if (requiredKeys.length > 0 && tokenAttributes.requireServiceAccount === false) {
    report([at, 'requiredServiceAccountAnnotationKeys'], 'needs requireServiceAccount: true');
  }
  const seen = new Set<string>();
  for (const list of [
    'requiredServiceAccountAnnotationKeys',
    'optionalServiceAccountAnnotationKeys',
  ] as const) {
    for (const [index, key] of (tokenAttributes[list] ?? []).entries()) {
      const [problem] = checkQualifiedName(key);
      if (problem) report([at, list, index], problem);
      else if (seen.has(key)) report([at, list, index], `${key} is listed twice`);
      seen.add(key);
    }
  }
}

function isFileName(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !/[/\s\0]/.test(name);
}
