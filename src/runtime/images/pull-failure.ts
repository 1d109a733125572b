/** What went wrong with a pull, in the words Kubernetes shows. Pure. */
import { RuntimeCallError, RuntimeErrorCode } from '../runtime-call-error.ts';

/** Why a container waits for its image: the reasons Kubernetes shows. */
export type ImageFailure =
  | 'ErrImagePull'
  | 'ImagePullBackOff'
  | 'ErrImageNeverPull'
  | 'InvalidImageName'
  | 'ImageInspectError'
  | 'RegistryUnavailable'
  | 'SignatureValidationFailed';

/** Whether the work may have been done although the answer says otherwise. */
export function isUnknown(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(isUnknown);
  const { Cancelled, DeadlineExceeded, Unavailable } = RuntimeErrorCode;
  const open: readonly number[] = [Cancelled, DeadlineExceeded, Unavailable];
  return !(error instanceof RuntimeCallError) || open.includes(error.code);
}

/** Runtimes say by the beginning of their text when the registry or a signature is to blame. */
export function pullFailure(image: string, error: unknown): { reason: ImageFailure; message: string } {
  const text = textOf(error);
  const causes = {
    RegistryUnavailable: 'the registry is unavailable',
    SignatureValidationFailed: 'the signature validation failed',
  };
  for (const reason of ['RegistryUnavailable', 'SignatureValidationFailed'] as const) {
    if (!text.startsWith(reason)) continue;
    const rest = text.slice(reason.length);
    return { reason, message: `image pull failed for ${image} because ${causes[reason]}${rest}` };
  }
  return { reason: 'ErrImagePull', message: text };
}

/** The runtime's own words: the call and the image are named around them already. */
export function textOf(error: unknown): string {
  if (error instanceof RuntimeCallError) return error.detail;
  return error instanceof Error ? error.message : String(error);
}

/** Each different text once, in brackets when there are several. */
export function combined(errors: readonly unknown[]): string {
  const texts = [...new Set(errors.map(textOf))];
  return texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
}
