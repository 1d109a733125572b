/**
 * Beyond Kubernetes: periods, time-outs and delays below a second, by a pod annotation, since the fields of
 * the Pod hold whole seconds.
 *
 *     probes.kubelet-ts.io/timing: |
 *       {"web": {"readiness": {"periodMilliseconds": 200, "timeoutMilliseconds": 100}}}
 *
 * The first key is a container's name, the second `liveness`, `readiness` or `startup`. Each of
 * `periodMilliseconds` (10 and up), `timeoutMilliseconds` (1 and up) and `initialDelayMilliseconds` (0 and
 * up) takes the place of the field in seconds; what is absent keeps its field. Other agents ignore the
 * annotation, so the fields in seconds should make sense alone. What is wrong in it is reported and has no
 * effect; the rest of it counts.
 */
import { podContainers } from '../kubernetes/init-containers.ts';
import type { Pod } from '../kubernetes/types.ts';
import { type ProbeKind, probeKinds, probeOf } from './probe-kind.ts';
import type { TimingOverride } from './probe-timing.ts';

/** Name of the pod annotation that holds times of probes below a second. */
export const timingAnnotation = 'probes.kubelet-ts.io/timing';

const dayMs = 86_400_000;
const ranges: Readonly<Record<keyof TimingOverride, readonly [number, number]>> = {
  periodMilliseconds: [10, dayMs],
  timeoutMilliseconds: [1, dayMs],
  initialDelayMilliseconds: [0, dayMs],
};

/** Times that replace those of the spec, by container and probe. */
export interface TimingOverrides {
  readonly of: (container: string, kind: ProbeKind) => TimingOverride | undefined;
  /** What is wrong with the annotation, each a sentence that names the place. */
  readonly problems: readonly string[];
}

const none: TimingOverrides = { of: () => undefined, problems: [] };

/** Reads the annotation; answers what can be used, and what is wrong with the rest. */
export function readTimingAnnotation(pod: Pod): TimingOverrides {
  const text = pod.metadata.annotations?.[timingAnnotation];
  if (text === undefined) return none;
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    return { of: () => undefined, problems: [`it is not JSON: ${(error as Error).message}`] };
  }
  const problems: string[] = [];
  const found = new Map<string, TimingOverride>();
  for (const [name, kinds] of members(document, 'the annotation', problems)) {
    const place = [...podContainers(pod.spec)].find(({ container }) => container.name === name);
    if (!place) problems.push(`"${name}": the pod has no container of this name`);
    for (const [kind, fields] of members(kinds, `"${name}"`, problems)) {
      const where = `"${name}"."${kind}"`;
      if (!isKind(kind)) problems.push(`${where}: must be one of ${probeKinds.join(', ')}`);
      else if (place && !probeOf(place.container, kind))
        problems.push(`${where}: the container has no such probe`);
      else found.set(`${name}/${kind}`, readFields(fields, where, problems));
    }
  }
  return { of: (container, kind) => found.get(`${container}/${kind}`), problems };
}

function readFields(value: unknown, where: string, problems: string[]): TimingOverride {
  const fields: { -readonly [Field in keyof TimingOverride]: number } = {};
  for (const [field, number] of members(value, where, problems)) {
    if (!isField(field)) {
      problems.push(`${where}."${field}": must be one of ${Object.keys(ranges).join(', ')}`);
      continue;
    }
    const [least, most] = ranges[field];
    if (typeof number !== 'number' || !Number.isInteger(number) || number < least || number > most) {
      problems.push(`${where}."${field}": must be a whole number from ${least} to ${most}`);
    } else fields[field] = number;
  }
  return fields;
}

function members(value: unknown, where: string, problems: string[]): [string, unknown][] {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return Object.entries(value);
  problems.push(`${where}: must be an object`);
  return [];
}

const isKind = (text: string): text is ProbeKind => (probeKinds as readonly string[]).includes(text);
const isField = (text: string): text is keyof TimingOverride => Object.hasOwn(ranges, text);
