/**
 * From the bytes of a manifest to pods, or to what is wrong with them, with line and field. Pure; never
 * throws on any input. YAML and JSON; a file holds one Pod, a URL may also answer with a PodList.
 */
import { isUtf8 } from 'node:buffer';
import { isObject } from '../kubernetes/json-object.ts';
import {
  type FieldError,
  fieldPathSegments,
  formatFieldError,
} from '../kubernetes/pod-validation/field-error.ts';
import type { Pod } from '../kubernetes/types.ts';
import { type JsonValue, parseYaml, type YamlDocument, YamlError } from '../kubernetes/yaml.ts';
import type { ManifestError, ManifestProblem, StaticSource } from './manifest-error.ts';
import { maxManifestBytes } from './manifest-file.ts';
import type { DecodedManifest, DecodeManifest } from './pod-source.ts';
import { staticPod, staticPodName } from './static-pod.ts';

type DecodeError = DecodedManifest['errors'][number];

export interface ManifestDecoderOptions {
  source: StaticSource;
  nodeName: string;
  /** Epoch ms. */
  now: () => number;
  /** Whether a Kubernetes feature gate is on. */
  featureEnabled: (gate: string) => boolean;
}

/**
 * Most line breaks, commas and opening brackets in a manifest. Each value of a text needs one, so this
 * bounds the time and memory that reading takes: megabytes of tiny values would hold up every other pod for
 * a minute. The largest real pods have a tenth of it.
 * Differs from the kubelet, which limits the bytes only.
 */
const maxSeparators = 50_000;
const separators: ReadonlySet<number> = new Set(Buffer.from('\n,[{'));

/** Makes the decoder for one source. */
export function createManifestDecoder(options: ManifestDecoderOptions): DecodeManifest {
  return (content, origin) => {
    try {
      return decodeDocument(readDocument(content), origin, options);
    } catch (error) {
      if (!(error instanceof Unusable)) throw error;
      const { problem, remedy } = error;
      return { pods: [], errors: [{ source: options.source, origin, problems: [problem], remedy }] };
    }
  };
}

/** The whole text is of no use. Internal to this module. */
class Unusable extends Error {
  readonly problem: ManifestProblem;
  readonly remedy: string;

  constructor(problem: ManifestProblem, remedy: string) {
    super(problem.reason);
    this.problem = problem;
    this.remedy = remedy;
  }
}

function unusable(remedy: string, reason: string, line?: number): Unusable {
  return new Unusable({ reason, ...(line !== undefined && { line }) }, remedy);
}

/** The only document of a text that is not empty. */
function readDocument(content: Uint8Array): YamlDocument {
  if (content.length > maxManifestBytes) {
    const reason = `it has more than ${maxManifestBytes} bytes (10 MiB)`;
    throw unusable('Remove what does not belong into a Pod manifest', reason);
  }
  if (hasMoreSeparators(content, maxSeparators)) {
    const reason = `it holds too many values: more than ${maxSeparators} line breaks, commas and brackets`;
    throw unusable('Remove what does not belong into a Pod manifest', reason);
  }
  if (!isUtf8(content)) {
    const remedy = 'Save it as UTF-8';
    throw unusable(remedy, 'it holds bytes that are not UTF-8', firstBadLine(content));
  }
  // Drops a byte order mark.
  const text = new TextDecoder().decode(content);
  if (text.trim() === '') throw unusable('Write a Pod into it or remove it', 'it is empty');
  let documents: YamlDocument[];
  try {
    documents = parseYaml(text);
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    throw unusable('Correct the syntax', `${error.reason} (column ${error.column})`, error.line);
  }
  const [first, second] = documents.filter(({ value }) => value !== null);
  if (first === undefined)
    throw unusable('Write a Pod into it or remove it', 'it holds nothing but comments');
  if (second !== undefined) {
    const reason = 'it holds more than one YAML document; a second one begins here';
    throw unusable('Put each Pod into a file of its own', reason, second.lineOf([]));
  }
  return first;
}

function hasMoreSeparators(content: Uint8Array, limit: number): boolean {
  let count = 0;
  for (const byte of content) if (separators.has(byte) && ++count > limit) return true;
  return false;
}

function firstBadLine(content: Uint8Array): number {
  let line = 1;
  for (let start = 0; start < content.length; line++) {
    const end = content.indexOf(0x0a, start);
    if (end < 0 || !isUtf8(content.subarray(start, end))) return line;
    start = end + 1;
  }
  return line;
}

function decodeDocument(
  document: YamlDocument,
  origin: string,
  options: ManifestDecoderOptions,
): DecodedManifest {
  const { value } = document;
  const remedy = 'Write a Pod of apiVersion v1';
  const line = (...path: (string | number)[]) => document.lineOf(path);
  if (!isObject(value)) throw unusable(remedy, `it holds ${describe(value)}, not a Pod`, line());
  const { kind, apiVersion } = value;
  if (kind === undefined) throw unusable(remedy, 'kind: Required value', line());
  const isList = kind === 'PodList' || kind === 'List';
  if (kind !== 'Pod' && !(isList && options.source === 'http')) {
    const advice = isList ? 'Put each Pod into a file of its own' : remedy;
    const wanted = options.source === 'http' ? 'Pod or PodList' : 'Pod';
    throw unusable(advice, `kind: ${describe(kind)} cannot be run; it must be ${wanted}`, line('kind'));
  }
  if (apiVersion !== 'v1') {
    const reason =
      apiVersion === undefined
        ? 'apiVersion: Required value'
        : `apiVersion: ${describe(apiVersion)} has no Pods; it must be v1`;
    throw unusable(remedy, reason, line('apiVersion'));
  }
  if (!isList) return decodePod({ manifest: value, path: [], document, origin, options });
  const items = value.items ?? [];
  if (!Array.isArray(items)) {
    throw unusable('Write a list of Pods', `items: must be a list, not ${describe(items)}`, line('items'));
  }
  const decoded = items.map((manifest, index) =>
    decodePod({ manifest, path: ['items', index], document, origin, options }),
  );
  return withoutRepeats(
    decoded.flatMap(({ pods }) => pods),
    decoded.flatMap(({ errors }) => errors),
    { source: options.source, origin },
  );
}

interface PodText {
  manifest: JsonValue;
  /** Where it stands in the document. */
  path: (string | number)[];
  document: YamlDocument;
  origin: string;
  options: ManifestDecoderOptions;
}

function decodePod({ manifest, path, document, origin, options }: PodText): DecodedManifest {
  const { source, nodeName, now, featureEnabled } = options;
  const fail = (problems: readonly ManifestProblem[]): DecodedManifest => {
    const pod = identityIn(manifest, nodeName);
    const remedy = `Correct ${problems.length === 1 ? 'it' : 'them'}`;
    return { pods: [], errors: [{ source, origin, ...(pod && { pod }), problems, remedy }] };
  };
  const problemAt = (field: string, reason: string): ManifestProblem => {
    const line = document.lineOf([...path, ...fieldPathSegments(field)]);
    const prefix = path.length === 0 ? '' : `items[${path[1]}]${field === '' ? '' : '.'}`;
    return { ...(line !== undefined && { line }), field: `${prefix}${field}`, reason: `${prefix}${reason}` };
  };
  if (!isObject(manifest)) return fail([problemAt('', ` must be a Pod, not ${describe(manifest)}`)]);
  const { kind = 'Pod', apiVersion = 'v1' } = manifest;
  if (kind !== 'Pod') return fail([problemAt('kind', `kind: must be Pod, not ${describe(kind)}`)]);
  if (apiVersion !== 'v1') {
    return fail([problemAt('apiVersion', `apiVersion: must be v1, not ${describe(apiVersion)}`)]);
  }
  const context = { source, origin, nodeName, seenAt: now(), featureEnabled };
  const { pod, problems } = staticPod(manifest, context);
  if (pod !== undefined) return { pods: [pod], errors: [] };
  return fail(problems.map((error: FieldError) => problemAt(error.path, formatFieldError(error))));
}

/** Name of the pod that a bad manifest is about, as far as it has one. */
function identityIn(manifest: JsonValue, nodeName: string): ManifestError['pod'] {
  if (!isObject(manifest) || !isObject(manifest.metadata)) return undefined;
  const { name, namespace } = manifest.metadata;
  if (typeof name !== 'string' || name === '' || name.length > 253) return undefined;
  const where = typeof namespace === 'string' && namespace !== '' ? namespace : 'default';
  return { name: staticPodName(name, nodeName), namespace: where };
}

/** The first of several pods of one name or uid in a list counts. */
function withoutRepeats(
  pods: readonly Pod[],
  errors: readonly DecodeError[],
  from: Pick<DecodeError, 'source' | 'origin'>,
): DecodedManifest {
  const seen = new Set<string>();
  const kept: Pod[] = [];
  const repeated: DecodeError[] = [];
  for (const pod of pods) {
    const { name, namespace, uid } = pod.metadata;
    const keys = [`uid ${uid}`, `name ${namespace}/${name}`];
    if (!keys.some((key) => seen.has(key))) kept.push(pod);
    else {
      const reason = `pod ${namespace}/${name} has the name or uid of another pod in the list`;
      const problems = [{ reason }];
      repeated.push({ ...from, pod: { name, namespace, uid }, problems, remedy: 'Remove one of the two' });
    }
    for (const key of keys) seen.add(key);
  }
  return { pods: kept, errors: [...errors, ...repeated] };
}

function describe(value: JsonValue): string {
  if (value === null) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a mapping';
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
