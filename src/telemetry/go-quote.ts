/** Text in quotes as Go writes it, the form that readers of Kubernetes' logs and files expect. */

/** What may stand between quotes as it is: printable ASCII without quote and backslash. */
const plain = /^[ !#-[\]-~]*$/;
const escaped = /["\\]|[^\P{C}]|[^\P{Z} ]/gu;
const shortEscapes: Record<string, string> = {
  '"': '\\"',
  '\\': '\\\\',
  '\u0007': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
};

/** Quotes as Go's `strconv.Quote`: printable characters stay, others become escapes. */
export function quote(value: string): string {
  if (plain.test(value)) return `"${value}"`;
  return `"${value.toWellFormed().replace(escaped, escape)}"`;
}

function escape(character: string): string {
  const short = shortEscapes[character];
  if (short !== undefined) return short;
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x80) return `\\x${code.toString(16).padStart(2, '0')}`;
  return code > 0xffff
    ? `\\U${code.toString(16).padStart(8, '0')}`
    : `\\u${code.toString(16).padStart(4, '0')}`;
}
