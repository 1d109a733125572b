/**
 * What is wrong with a manifest, in a form that can be logged, counted and recorded as an event, and that
 * two readings of the same broken manifest agree on.
 */

/** Where static pods come from, as annotation `kubernetes.io/config.source` names it. */
export type StaticSource = 'file' | 'http';

/** Every place pods come from. */
export type SourceName = StaticSource | 'api';

/** One thing that is wrong. */
export interface ManifestProblem {
  /** Line in the text, from 1, where the text has lines. */
  readonly line?: number;
  /** For example `spec.containers[0].image`. */
  readonly field?: string;
  readonly reason: string;
}

export interface ManifestError {
  readonly source: SourceName;
  /** Path of the file, URL without credentials, or the API server's object. */
  readonly origin: string;
  /** The pod that the manifest is about, as far as it could be read. */
  readonly pod?: { readonly namespace: string; readonly name: string; readonly uid?: string };
  /** Never empty. */
  readonly problems: readonly ManifestProblem[];
  /** What the operator can do. */
  readonly remedy: string;
  /** True while an earlier, good version of the pod goes on running. */
  readonly keepsLastGood: boolean;
}

/** Problems that are written out; the rest is counted. */
const shownProblems = 5;

/**
 * One line for log and event: `web.yaml:7: spec.containers[0].image: Required value; … Add it. The last
 * good version of the pod keeps running.`
 */
export function manifestErrorText(error: ManifestError): string {
  const { origin, problems } = error;
  const shown = problems.slice(0, shownProblems).map(({ line, field, reason }, index) => {
    const place = line === undefined ? '' : index === 0 ? `:${line}` : `line ${line}: `;
    const what = field === undefined || reason.startsWith(field) ? reason : `${field}: ${reason}`;
    return index === 0 ? `${origin}${place}: ${what}` : `${place}${what}`;
  });
  if (problems.length > shownProblems) shown.push(`and ${problems.length - shownProblems} more problems`);
  const kept = error.keepsLastGood ? ' The last good version of the pod keeps running.' : '';
  return `${shown.join('; ')}. ${error.remedy}.${kept}`;
}

/** True when both say the same, so that the second need not be reported. */
export function sameManifestError(a: ManifestError | undefined, b: ManifestError | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return manifestErrorText(a) === manifestErrorText(b);
}
