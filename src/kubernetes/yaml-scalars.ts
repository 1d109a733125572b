/**
 * What a YAML scalar means, read the way Kubernetes reads manifests and configuration files.
 *
 * Go's `sigs.k8s.io/yaml` is a YAML 1.1 reader with habits of its own: `0644` is octal, `1e3` a number,
 * `yes` and `off` are booleans, dates and `12:30:45` stay text, `089` (no octal number) is the decimal 89.
 * A file must mean the same here as there.
 *
 * Differs from the kubelet:
 * - a bare `y`, `Y`, `n` or `N` stays text (the Go parser makes booleans of them, so `y: 0` becomes
 *   the key `true`; nobody who wrote it wanted that);
 * - integers that a JavaScript number cannot hold exactly are refused instead of being rounded.
 */

export type YamlScalar = string | number | boolean | null;

const WORDS = new Map<string, YamlScalar>([
  ['', null],
  ['~', null],
]);
const spellings = (word: string) => [word, word[0]!.toUpperCase() + word.slice(1), word.toUpperCase()];
for (const word of ['true', 'yes', 'on']) for (const spelling of spellings(word)) WORDS.set(spelling, true);
for (const word of ['false', 'no', 'off']) for (const spelling of spellings(word)) WORDS.set(spelling, false);
for (const spelling of spellings('null')) WORDS.set(spelling, null);

const NOT_FINITE = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;
const INTEGER = /^([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|(?:0[oO]|0)([0-7]+)|(0|[1-9][0-9]*))$/;
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
const DIGITS_ONLY = /^[-+]?[0-9]+$/;

/** A scalar that has no JSON value; the message has no position, the caller adds it. */
export class ScalarError extends Error {
  override readonly name = 'ScalarError';
}

function exact(value: number, text: string): number {
  if (Number.isSafeInteger(value)) return value === 0 ? 0 : value;
  throw new ScalarError(
    `integer ${text} is too large to be read exactly; write it in quotes if text is meant`,
  );
}

/** The number `text` writes, or undefined when it is not a number to Go's parser. */
function parseNumber(text: string): number | undefined {
  const first = text.charCodeAt(0);
  if (first === 0x2e /* . */) {
    if (!FLOAT.test(text)) return undefined;
    return Number(text);
  }
  const isDigit = first >= 0x30 && first <= 0x39;
  if (!isDigit && first !== 0x2b /* + */ && first !== 0x2d /* - */) return undefined;
  const plain = text.includes('_') ? text.replaceAll('_', '') : text;
  const integer = INTEGER.exec(plain);
  if (integer) {
    const [, sign, hex, binary, octal, decimal] = integer;
    const digits = hex ? `0x${hex}` : binary ? `0b${binary}` : octal ? `0o${octal}` : decimal!;
    return exact(Number(digits) * (sign === '-' ? -1 : 1), text);
  }
  if (!FLOAT.test(plain)) return undefined;
  // Go's parser leaves a float that overflows as text.
  const value = Number(plain);
  if (!Number.isFinite(value)) return undefined;
  return DIGITS_ONLY.test(plain) ? exact(value, text) : value;
}

/** The value of an unquoted scalar without a tag. Throws `ScalarError` for `.inf`, `.nan`, huge integers. */
export function resolvePlainScalar(text: string): YamlScalar {
  const word = WORDS.get(text);
  if (word !== undefined) return word;
  if (NOT_FINITE.test(text))
    throw new ScalarError(`${text} cannot be expressed in JSON; write it in quotes if text is meant`);
  return parseNumber(text) ?? text;
}

/** The value of a scalar with an explicit tag, as `!!int "5"`. Tags of other vocabularies mean text. */
export function resolveTaggedScalar(tag: string, text: string): YamlScalar {
  const kind = tag.replace(/^!!|^!<tag:yaml\.org,2002:(.*)>$/, '$1');
  if (kind === 'binary')
    throw new ScalarError('!!binary values are not supported; give the base64 text as a string');
  if (kind !== 'bool' && kind !== 'int' && kind !== 'float' && kind !== 'null') return text;
  const value = resolvePlainScalar(text);
  const found =
    value === null
      ? 'null'
      : typeof value === 'boolean'
        ? 'bool'
        : typeof value === 'number'
          ? 'number'
          : 'str';
  const fits =
    found === kind ||
    (found === 'number' &&
      (kind === 'float' ||
        (kind === 'int' && Number.isInteger(value) && !/[.eE]/.test(text.replace(/^0[xX].*/, '')))));
  if (!fits) throw new ScalarError(`"${text}" cannot be read as !!${kind}`);
  return value;
}
