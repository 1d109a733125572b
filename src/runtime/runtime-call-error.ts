/**
 * How a call to the container runtime fails, whatever the runtime speaks. Callers decide by `code` (or the
 * getters for the codes that matter), never by the text.
 */

/** The gRPC status codes, which CRI runtimes answer with. */
export const RuntimeErrorCode = {
  Cancelled: 1,
  Unknown: 2,
  InvalidArgument: 3,
  DeadlineExceeded: 4,
  NotFound: 5,
  AlreadyExists: 6,
  PermissionDenied: 7,
  ResourceExhausted: 8,
  FailedPrecondition: 9,
  Aborted: 10,
  OutOfRange: 11,
  Unimplemented: 12,
  Internal: 13,
  Unavailable: 14,
  DataLoss: 15,
  Unauthenticated: 16,
} as const;

/** A status code of gRPC. */
export type RuntimeErrorCode = (typeof RuntimeErrorCode)[keyof typeof RuntimeErrorCode];

const nameOfCode = new Map<number, string>(
  Object.entries(RuntimeErrorCode).map(([name, code]) => [code, name]),
);

/** A call that the runtime refused, that never reached it, or whose answer did not come in time. */
export class RuntimeCallError extends Error {
  override readonly name = 'RuntimeCallError';
  /** The CRI call, as in CRI: `RunPodSandbox`. */
  readonly call: string;
  /** What the call was about, such as `container web/nginx`; empty when about the runtime itself. */
  readonly object: string;
  readonly code: RuntimeErrorCode;
  /** The runtime's own words. */
  readonly detail: string;

  constructor(
    failure: { call: string; object?: string; code: RuntimeErrorCode; detail: string; remedy?: string },
    options?: ErrorOptions,
  ) {
    const { call, object = '', code, detail, remedy } = failure;
    const subject = object ? `${call} of ${object}` : call;
    super(`${subject} failed: ${detail} (${nameOfCode.get(code)})${remedy ? `. ${remedy}` : ''}`, options);
    this.call = call;
    this.object = object;
    this.code = code;
    this.detail = detail;
  }

  /** The sandbox, container or image does not exist. */
  get notFound(): boolean {
    return this.code === RuntimeErrorCode.NotFound;
  }

  /** The runtime could not be reached, or went away during the call: the outcome is unknown. */
  get unavailable(): boolean {
    return this.code === RuntimeErrorCode.Unavailable;
  }

  /** The answer did not come in time: the outcome is unknown. */
  get deadlineExceeded(): boolean {
    return this.code === RuntimeErrorCode.DeadlineExceeded;
  }

  /** This runtime, or this version of it, does not know the call. */
  get unimplemented(): boolean {
    return this.code === RuntimeErrorCode.Unimplemented;
  }
}

/** Whether `error` says that the object of a runtime call does not exist. */
export function isNotFound(error: unknown): boolean {
  return error instanceof RuntimeCallError && error.notFound;
}
