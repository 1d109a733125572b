/**
 * What is wrong with one field of an object, in the vocabulary of the Kubernetes API (field path, kind of
 * problem, offending value), and the list that validation rules collect such errors in.
 *
 * A hostile manifest cannot make the list or a message grow without bound: beyond a limit errors are only
 * counted, and long values and map keys are cut when they are written out.
 */

type FieldErrorType =
  | 'Required'
  | 'Invalid'
  | 'NotSupported'
  | 'Duplicate'
  | 'Forbidden'
  | 'TooLong'
  | 'TooMany'
  | 'NotFound';

export interface FieldError {
  /** Where, as in `spec.containers[0].resources.limits[cpu]`. */
  path: string;
  type: FieldErrorType;
  /** The offending value; absent for `Required`, `Forbidden` and `TooLong`. */
  value?: unknown;
  /** What is wrong and what would be right; may be empty when the type says it all. */
  detail: string;
}

const titles: Readonly<Record<FieldErrorType, string>> = {
  Required: 'Required value',
  Invalid: 'Invalid value',
  NotSupported: 'Unsupported value',
  Duplicate: 'Duplicate value',
  Forbidden: 'Forbidden',
  TooLong: 'Too long',
  TooMany: 'Too many',
  NotFound: 'Not found',
};

const longestShownValue = 256;
const longestShownKey = 128;
const mostErrors = 200;

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length)}…`;
}

function showValue(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(cut(value, longestShownValue));
  if (value === null || typeof value !== 'object') return String(value);
  // A huge object would be written out only to be cut again.
  if (Array.isArray(value) && value.length > 64) return `a list of ${value.length} items`;
  return cut(JSON.stringify(value) ?? 'an object', longestShownValue);
}

/**
 * One error as the API server words it: `spec.containers[0].name: Required value`,
 * `…: Invalid value: "x": detail`, `…: Unsupported value: "x": supported values: "A", "B"`.
 */
export function formatFieldError(error: FieldError): string {
  const parts = [error.path, titles[error.type]];
  if ('value' in error) parts.push(showValue(error.value));
  if (error.detail !== '') parts.push(error.detail);
  return parts.join(': ');
}

/** The path of the entry `key` of the map at `path`. */
export function keyPath(path: string, key: string): string {
  return `${path}[${cut(key, longestShownKey)}]`;
}

/**
 * The steps of a path, for finding the place in a document: `spec.containers[0].image` gives
 * `['spec', 'containers', 0, 'image']`. Map keys that hold brackets may come out split.
 */
export function fieldPathSegments(path: string): (string | number)[] {
  const segments: (string | number)[] = [];
  for (const [, name, key] of path.matchAll(/([^.[\]]+)|\[([^\]]*)\]/g)) {
    if (name !== undefined) segments.push(name);
    else if (key !== undefined) segments.push(/^\d+$/.test(key) ? Number(key) : key);
  }
  return segments;
}

/** Collects errors; every rule gets the same list. */
export class FieldErrors {
  readonly #list: FieldError[] = [];
  #unlisted = 0;

  /** The collected errors in the order found, with one closing entry when there were too many to list. */
  list(): FieldError[] {
    if (this.#unlisted === 0) return [...this.#list];
    const detail = `${this.#unlisted} further problems are not listed`;
    return [...this.#list, { path: 'pod', type: 'TooMany', value: mostErrors + this.#unlisted, detail }];
  }

  add(error: FieldError): void {
    if (this.#list.length < mostErrors) this.#list.push(error);
    else this.#unlisted++;
  }

  required(path: string, detail = ''): void {
    this.add({ path, type: 'Required', detail });
  }

  invalid(path: string, value: unknown, detail: string): void {
    this.add({ path, type: 'Invalid', value, detail });
  }

  notSupported(path: string, value: unknown, supported: readonly string[]): void {
    const detail = `supported values: ${supported.map((name) => JSON.stringify(name)).join(', ')}`;
    this.add({ path, type: 'NotSupported', value, detail });
  }

  /** An `Invalid` error for each of the problems that a name check found. */
  problems(path: string, value: unknown, details: readonly string[]): void {
    for (const detail of details) this.invalid(path, value, detail);
  }

  duplicate(path: string, value: unknown): void {
    this.add({ path, type: 'Duplicate', value, detail: '' });
  }

  forbidden(path: string, detail: string): void {
    this.add({ path, type: 'Forbidden', detail });
  }

  tooLong(path: string, maxBytes: number): void {
    this.add({ path, type: 'TooLong', detail: `may not be more than ${maxBytes} bytes` });
  }

  tooMany(path: string, actual: number, most: number): void {
    this.add({ path, type: 'TooMany', value: actual, detail: `must have at most ${most} items` });
  }

  notFound(path: string, value: unknown): void {
    this.add({ path, type: 'NotFound', value, detail: '' });
  }

  /** A field whose value must be one of `supported`; an absent or empty one is `Required`. */
  oneOf(path: string, value: string | undefined, supported: readonly string[]): void {
    if (value === undefined || value === '') this.required(path);
    else this.optionalOneOf(path, value, supported);
  }

  /** As {@link oneOf}, but the field may be absent. */
  optionalOneOf(path: string, value: string | undefined, supported: readonly string[]): void {
    if (value !== undefined && !supported.includes(value)) this.notSupported(path, value, supported);
  }

  /** A whole number between `least` and `most`; an absent one is fine. */
  range(path: string, value: number | undefined, least: number, most: number): void {
    if (value === undefined || (value >= least && value <= most)) return;
    this.invalid(path, value, `must be between ${least} and ${most}, inclusive`);
  }

  /** A whole number that is not negative; an absent one is fine. */
  nonNegative(path: string, value: number | undefined): void {
    if (value !== undefined && value < 0) this.invalid(path, value, 'must be greater than or equal to 0');
  }
}
