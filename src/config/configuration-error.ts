/** One mistake in flags or files, with the place to mend it. */

/** Names and list indexes from the file's root. */
export type FieldPath = readonly (string | number)[];

/** One thing that is wrong, and where. */
export interface ConfigurationError {
  readonly file?: string;
  /** From 1. */
  readonly line?: number;
  /** Flag name without dashes. */
  readonly flag?: string;
  /** `authentication.webhook.cacheTTL`, `registerWithTaints[0].key`, `evictionSoft[memory.available]`. */
  readonly field?: string;
  readonly message: string;
}

/** `kubelet.yaml:7: maxPods: must be …`, `--max-pods: needs …`. */
export function describeConfigurationError({ file, line, flag, field, message }: ConfigurationError): string {
  const place = [file && (line === undefined ? file : `${file}:${line}`), flag && `--${flag}`, field];
  return [...place.filter((part) => part), message].join(': ');
}

/** `evictionHard.[memory.available]`, `registerWithTaints[0].key`. */
export function formatFieldPath(path: FieldPath): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else if (!/^[A-Za-z0-9_-]+$/.test(part)) text += `[${part}]`;
    else text += text === '' ? part : `.${part}`;
  }
  return text;
}
