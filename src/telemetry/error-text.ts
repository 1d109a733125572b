/**
 * The text of anything that was thrown, with its causes, as an operator should read it: outermost first,
 * joined by a colon, without repeating a cause that the outer message already quotes.
 */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return plainText(error);
  let text = error.message === '' ? error.name : error.message;
  let cause: unknown = error.cause;
  for (let depth = 0; cause !== undefined && depth < 8; depth++) {
    const inner = cause instanceof Error ? cause.message : plainText(cause);
    if (inner !== '' && !text.includes(inner)) text += `: ${inner}`;
    cause = cause instanceof Error ? cause.cause : undefined;
  }
  return text;
}

/** The stack of a programming mistake (not of a failure of the world), for the log. */
export function mistakeStack(error: unknown): string | undefined {
  const mistake =
    error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError;
  return mistake ? error.stack : undefined;
}

function plainText(value: unknown): string {
  if (typeof value === 'string') return value;
  return fieldJson(value);
}

/** JSON of any value; what JSON cannot hold becomes its nearest text, and nothing makes it throw. */
export function fieldJson(value: unknown): string {
  try {
    return JSON.stringify(value, jsonReplacer) ?? 'null';
  } catch {
    try {
      return JSON.stringify(String(value));
    } catch {
      return '"<unprintable>"';
    }
  }
}

function jsonReplacer(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (value instanceof Error) return errorText(value);
  if (value instanceof Map) return Object.fromEntries(value);
  if (value instanceof Set) return [...value];
  if (typeof value === 'function' || typeof value === 'symbol') return String(value);
  return value;
}
