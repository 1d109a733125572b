/** What the doctor finds: something that stops the node or may trouble it, with what to do about it. */

export interface Finding {
  /** The check's short name, for programs: `swap`, `runtime-socket`, … */
  readonly check: string;
  /** `error`: the node does not work like this. `warning`: it works, with something missing. */
  readonly severity: 'error' | 'warning';
  /** What it is about: a file, an address, a kernel setting. */
  readonly object: string;
  readonly problem: string;
  readonly remedy: string;
}

/** One line for people: what, on which object, what to do. */
export function findingText({ object, problem, remedy }: Finding): string {
  return `${object}: ${problem}. ${remedy}.`;
}
