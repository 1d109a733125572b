/** Rules for file paths in manifests: what may be named, and what would lead out of its place. */
import type { FieldErrors } from './field-error.ts';

const parentElement = "must not contain the element '..'";

function hasParentElement(path: string): boolean {
  return path.includes('..') && path.split(/[\\/]/).includes('..');
}

/** A path without any `..` element. */
export function checkNoParent(errors: FieldErrors, at: string, path: string): void {
  if (hasParentElement(path)) errors.invalid(at, path, parentElement);
}

/** A relative path that stays below where it starts. */
export function checkDescendingPath(errors: FieldErrors, at: string, path: string): void {
  if (path.startsWith('/')) errors.invalid(at, path, 'must be a relative path');
  checkNoParent(errors, at, path);
}

/** A descending path whose first element is free for users: the atomic writer owns names with two dots. */
export function checkProjectedPath(errors: FieldErrors, at: string, path: string): void {
  checkDescendingPath(errors, at, path);
  if (path.startsWith('..') && !hasParentElement(path)) {
    errors.invalid(at, path, "must not start with '..'");
  }
}

/** Permission bits of a file. */
export function checkFileMode(errors: FieldErrors, at: string, mode: number | undefined): void {
  if (mode === undefined || (mode >= 0 && mode <= 0o777)) return;
  errors.invalid(at, mode, 'must be file permissions between 0 and 0777 octal (0 and 511 decimal)');
}
