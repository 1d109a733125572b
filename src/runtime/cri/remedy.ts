/** Makes failures of the gRPC library readable, and tells what the operator can do where the failure tells. */
import { RuntimeErrorCode } from '../runtime-call-error.ts';

/** What an operator can do about a failed call; undefined where the failure itself says enough. */
export function remedyFor(failure: {
  readonly code: RuntimeErrorCode;
  readonly detail: string;
  readonly path: string;
  readonly flag: string;
}): string | undefined {
  const { code, detail, path, flag } = failure;
  if (code === RuntimeErrorCode.Unimplemented && detail.includes('unknown service runtime.v1')) {
    return `What listens on ${path} speaks no CRI v1: is the CRI plugin switched off in its configuration, or is it too old?`;
  }
  if (code !== RuntimeErrorCode.Unavailable) return undefined;
  if (detail.includes('ENOENT')) {
    return `There is no socket ${path}: is the container runtime running? ${flag} names its endpoint`;
  }
  if (detail.includes('ECONNREFUSED')) {
    return `Nothing listens on ${path}: is the container runtime running? ${flag} names its endpoint`;
  }
  if (/EACCES|EPERM/.test(detail)) return `This process may not open ${path}: the agent has to run as root`;
  return `The connection to ${path} is tried again`;
}

/** The runtime's or the kernel's own words, without the gRPC library's around them. */
export function plainDetail(detail: string): string {
  return detail
    .replace(/^No connection established\. Last error: (?:Error: )?/, '')
    .replace(/\.? Resolution note:.*$/s, '')
    .trim();
}
