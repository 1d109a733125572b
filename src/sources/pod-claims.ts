/**
 * Settles which of several manifests gets a pod name or uid that more than one asks for: the one that has
 * it keeps it, among new ones the first by name gets it. Pure but for the records it is given.
 */
import { podFullName } from '../kubernetes/names.ts';
import type { Pod } from '../kubernetes/types.ts';
import type { ManifestRecord, PodVersion, UnkeptError } from './manifest-record.ts';

type Claimant = Pick<ManifestRecord, 'path' | 'wanted' | 'accepted' | 'duplicate'>;

/**
 * Gives every wanted pod its place unless another record holds its name or uid; sets `accepted` and
 * `duplicate` of the records, which come in order of precedence, and calls `onAccepted` for each change.
 * Returns the records that stand in another's way.
 */
export function settleClaims<R extends Claimant>(
  records: readonly R[],
  onAccepted: (record: R, version: PodVersion) => void,
): Set<R> {
  const holders = new Map<string, R>();
  for (const record of records) {
    for (const key of record.accepted ? identities(record.accepted.pod) : []) holders.set(key, record);
  }
  const inTheWay = new Set<R>();
  // A record that moves on to another name frees its own one, so go round until nothing moves.
  for (let moved = true; moved; ) {
    moved = false;
    inTheWay.clear();
    for (const record of records) {
      const { wanted, accepted } = record;
      record.duplicate = undefined;
      if (wanted === undefined || wanted.pod === accepted?.pod) continue;
      const taken = identities(wanted.pod).find((key) => (holders.get(key) ?? record) !== record);
      const holder = taken === undefined ? undefined : holders.get(taken);
      if (holder !== undefined) {
        record.duplicate = duplicateError(record.path, wanted.pod, holder);
        inTheWay.add(holder);
        continue;
      }
      for (const key of accepted ? identities(accepted.pod) : []) holders.delete(key);
      for (const key of identities(wanted.pod)) holders.set(key, record);
      record.accepted = wanted;
      onAccepted(record, wanted);
      moved = true;
    }
  }
  return inTheWay;
}

/** What no two pods of a node may share. */
function identities({ metadata }: Pod): string[] {
  return [`name ${podFullName(metadata.name, metadata.namespace)}`, `uid ${metadata.uid}`];
}

function duplicateError(path: string, pod: Pod, holder: Claimant): UnkeptError {
  const { name, namespace, uid } = pod.metadata;
  const other = holder.accepted?.pod.metadata;
  const what = other?.name === name && other.namespace === namespace ? 'name' : 'uid';
  const value = what === 'name' ? name : uid;
  return {
    source: 'file',
    origin: path,
    pod: { name, namespace, uid },
    problems: [
      {
        field: `metadata.${what}`,
        reason:
          `Error validating pod ${podFullName(name, namespace)} from file due to duplicate pod ${what} ` +
          `"${value}", ignoring; ${holder.path} has it already`,
      },
    ],
    remedy: `Give the pod another ${what}, or remove one of the two files`,
  };
}
