/** A hook ran and failed, or cannot run; the message says how. */
export class HookError extends Error {
  override readonly name = 'HookError';
}
