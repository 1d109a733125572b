/**
 * `$(NAME)` references in commands, arguments, environment values and sub-paths. `$$` stands for one `$`;
 * unknown names and unfinished references stay as they are written.
 */

/** Replaces every reference that `lookup` knows; its values are not looked at again. */
export function expand(text: string, lookup: (name: string) => string | undefined): string {
  let result = '';
  let done = 0;
  for (let at = text.indexOf('$'); at !== -1; at = text.indexOf('$', done)) {
    result += text.slice(done, at);
    const next = text[at + 1];
    const close = next === '(' ? text.indexOf(')', at + 2) : -1;
    if (close !== -1) {
      const reference = text.slice(at, close + 1);
      result += lookup(reference.slice(2, -1)) ?? reference;
      done = close + 1;
    } else {
      result += next === '$' ? '$' : text.slice(at, at + 2);
      done = at + 2;
    }
  }
  return result + text.slice(done);
}

/** A reference that had to have a value has none. */
export class MissingValueError extends Error {
  override readonly name = 'MissingValueError';
  /** The referenced variable. */
  readonly variable: string;

  constructor(variable: string) {
    super(`missing value for ${JSON.stringify(variable)}`);
    this.variable = variable;
  }
}

/** As {@link expand}, but an unknown or empty variable throws {@link MissingValueError} (`subPathExpr`). */
export function expandStrict(text: string, lookup: (name: string) => string | undefined): string {
  return expand(text, (name) => {
    const value = lookup(name);
    if (value === undefined || value === '') throw new MissingValueError(name);
    return value;
  });
}

/** Expands every entry of a command or argument list. */
export function expandAll(
  texts: readonly string[] | undefined,
  lookup: (name: string) => string | undefined,
): string[] {
  return (texts ?? []).map((text) => expand(text, lookup));
}
