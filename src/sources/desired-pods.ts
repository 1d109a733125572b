/**
 * What the pods of all sources together come to: one desired set by uid. No I/O, no clock.
 *
 * Guarantees: a source's trouble never touches another source's pods. Of two pods with one name the one
 * that was there first stays. As long as a source has not delivered all it has, nothing may be concluded
 * from a pod's absence: see {@link DesiredPods.ready}.
 */
import { podFullName } from '../kubernetes/names.ts';
import type { Pod } from '../kubernetes/types.ts';
import type { ManifestError, SourceName } from './manifest-error.ts';
import type { SourceUpdate } from './pod-source.ts';

/** What an update has changed. */
export interface DesiredChange {
  /** New pods, and those whose object is another one now (same uid, other content). */
  readonly set: readonly Pod[];
  /** Pods that are wanted no more. A replaced pod is here, and its successor, with another uid, in `set`. */
  readonly removed: readonly Pod[];
  /** True once every source has delivered all it has. */
  readonly ready: boolean;
}

export class DesiredPods {
  readonly #sources: ReadonlySet<SourceName>;
  readonly #updates = new Map<SourceName, SourceUpdate>();
  readonly #complete = new Set<SourceName>();
  #pods: ReadonlyMap<string, Pod> = new Map();
  #duplicates: readonly ManifestError[] = [];

  /** `sources` are all that will ever deliver. */
  constructor(sources: Iterable<SourceName>) {
    this.#sources = new Set(sources);
  }

  /** By uid. */
  get pods(): ReadonlyMap<string, Pod> {
    return this.#pods;
  }

  /**
   * True once every source has delivered all it has, at least once. Before, pods that run and are not
   * desired may belong to a source that has not spoken yet: they must be left alone.
   */
  get ready(): boolean {
    return this.#sources.size === this.#complete.size;
  }

  /** Everything that is wrong with manifests now, duplicates between sources included. */
  get errors(): readonly ManifestError[] {
    return [...[...this.#updates.values()].flatMap(({ errors }) => errors), ...this.#duplicates];
  }

  /** Takes in what a source says, as its whole truth. */
  apply(update: SourceUpdate): DesiredChange {
    this.#updates.set(update.source, update);
    if (update.complete) this.#complete.add(update.source);
    const before = this.#pods;
    this.#pods = this.#merge(before);
    return {
      set: [...this.#pods.values()].filter((pod) => before.get(pod.metadata.uid) !== pod),
      removed: [...before.values()].filter((pod) => !this.#pods.has(pod.metadata.uid)),
      ready: this.ready,
    };
  }

  #merge(before: ReadonlyMap<string, Pod>): Map<string, Pod> {
    const candidates = [...this.#updates.values()].flatMap(({ source, pods }) =>
      pods.map((pod) => ({ source, pod })),
    );
    // Those that are there already come first, so that they win.
    const isThere = ({ pod }: { pod: Pod }) => before.has(pod.metadata.uid);
    const ordered = [...candidates.filter(isThere), ...candidates.filter((candidate) => !isThere(candidate))];
    const pods = new Map<string, Pod>();
    const names = new Map<string, SourceName>();
    const duplicates: ManifestError[] = [];
    for (const { source, pod } of ordered) {
      const { name, namespace, uid } = pod.metadata;
      const fullName = podFullName(name, namespace);
      const holder = names.get(fullName);
      if (holder === undefined && !pods.has(uid)) {
        names.set(fullName, source);
        pods.set(uid, pod);
      } else duplicates.push(duplicateError(source, pod, holder));
    }
    this.#duplicates = duplicates;
    return pods;
  }
}

function duplicateError(source: SourceName, pod: Pod, holder: SourceName | undefined): ManifestError {
  const { name, namespace, uid } = pod.metadata;
  const what = holder === undefined ? `uid "${uid}"` : `name "${name}"`;
  const reason =
    `Error validating pod ${podFullName(name, namespace)} from ${source} due to duplicate pod ${what}, ` +
    `ignoring; ${holder === undefined ? 'another source' : `source ${holder}`} has it already`;
  return {
    source,
    origin: `source ${source}`,
    pod: { name, namespace, uid },
    problems: [{ field: holder === undefined ? 'metadata.uid' : 'metadata.name', reason }],
    remedy: 'Remove the pod from one of the two sources',
    keepsLastGood: false,
  };
}
