/**
 * Env files: text in which an `env` entry with `fileKeyRef` looks up one variable. Lines read
 * `NAME='value'`; single quotes only, no escapes, newlines inside the quotes belong to the value. Blank
 * lines and lines that start with `#` are skipped.
 */

/** The file cannot be read as an env file. */
export class EnvFileError extends Error {
  override readonly name = 'EnvFileError';

  constructor(line: number, problem: string) {
    super(`couldn't parse env file: line ${line}: ${problem}`);
  }
}

/**
 * The value of `key` at its first place, `undefined` when there is none. Lines after that place are not
 * read; a malformed line before it throws {@link EnvFileError}.
 */
export function lookUpEnvFile(text: string, key: string): string | undefined {
  let at = 0;
  let line = 1;
  while (at < text.length) {
    const start = /[ \t]*/y;
    start.lastIndex = at;
    start.test(text);
    at = start.lastIndex;
    const end = lineEnd(text, at);
    if (at === end || text[at] === '#' || (text[at] === '\r' && at + 1 === end)) {
      at = end + 1;
      line++;
      continue;
    }
    const equals = text.indexOf('=', at);
    if (equals === -1 || equals >= end) throw new EnvFileError(line, "there is no '='");
    const name = text.slice(at, equals);
    if (name === '' || /\s$/.test(name)) throw new EnvFileError(line, "a name has to stand right before '='");
    const after = text[equals + 1];
    let value = '';
    let next = equals + 1;
    if (after === "'") {
      const close = text.indexOf("'", equals + 2);
      if (close === -1) throw new EnvFileError(line, 'a quote is not closed');
      value = text.slice(equals + 2, close);
      next = close + 1;
      const rest = text.slice(next, lineEnd(text, next)).trim();
      if (rest !== '' && !rest.startsWith('#'))
        throw new EnvFileError(line, 'there is text after the closing quote');
    } else if (after !== undefined && !/\s/.test(after)) {
      throw new EnvFileError(line, 'a value has to stand in single quotes');
    }
    if (name === key) return value;
    line += value.split('\n').length;
    at = lineEnd(text, next) + 1;
  }
  return undefined;
}

function lineEnd(text: string, from: number): number {
  const end = text.indexOf('\n', from);
  return end === -1 ? text.length : end;
}
