/** The files that the downward API makes in a volume. Pure. */

import { podFieldValue, resourceFieldValue } from '../kubernetes/downward-fields.ts';
import { findContainer } from '../kubernetes/init-containers.ts';
import type { ResourceAmounts } from '../kubernetes/pod-resources.ts';
import type { Pod, Volume } from '../kubernetes/types.ts';
import { quote } from '../telemetry/go-quote.ts';
import type { Files, WrittenFile } from './atomic-writer.ts';
import { VolumeError } from './volume-kind.ts';

export type DownwardItem = NonNullable<NonNullable<Volume['downwardAPI']>['items']>[number];

export interface DownwardFilesRequest {
  readonly pod: Pod;
  /** The volume's name in the pod. */
  readonly volume: string;
  readonly items: readonly DownwardItem[];
  readonly defaultMode: number;
  /** Stands in for limits that are not set. */
  readonly nodeAllocatable: ResourceAmounts;
}

/** What volumes can show of a pod; the rest of what environments can is not known when files are written. */
const volumeFields = /^metadata\.(name|namespace|uid|labels|annotations|(labels|annotations)\['.*'\])$/s;

/** Throws {@link VolumeError} for a field that volumes cannot show. */
export function downwardFiles(request: DownwardFilesRequest): Files {
  const files = new Map<string, WrittenFile>();
  for (const item of request.items) {
    let text: string;
    try {
      text = valueOf(item, request);
    } catch (cause) {
      if (cause instanceof VolumeError) throw cause;
      throw new VolumeError(request.volume, (cause as Error).message, { cause });
    }
    files.set(item.path, { content: Buffer.from(text), mode: item.mode ?? request.defaultMode });
  }
  return files;
}

function valueOf({ fieldRef, resourceFieldRef, path }: DownwardItem, request: DownwardFilesRequest): string {
  const { pod, volume, nodeAllocatable } = request;
  if (fieldRef) {
    const { fieldPath } = fieldRef;
    if (fieldPath === 'metadata.labels') return mapLines(pod.metadata.labels);
    if (fieldPath === 'metadata.annotations') return mapLines(pod.metadata.annotations);
    if (!volumeFields.test(fieldPath)) throw new VolumeError(volume, `unsupported fieldPath: ${fieldPath}`);
    const facts = { nodeName: '', hostIps: [], podIps: [], nodeAllocatable };
    return podFieldValue(pod, fieldPath, facts);
  }
  if (resourceFieldRef) {
    const { containerName = '' } = resourceFieldRef;
    const container = findContainer(pod.spec, containerName)?.container;
    if (!container) throw new VolumeError(volume, `container ${JSON.stringify(containerName)} not found`);
    return resourceFieldValue(pod, container, resourceFieldRef, nodeAllocatable);
  }
  throw new VolumeError(volume, `the file ${JSON.stringify(path)} has neither fieldRef nor resourceFieldRef`);
}

/** One `key="value"` a line, sorted by key, without a newline at the end. */
function mapLines(map: Readonly<Record<string, string>> = {}): string {
  return Object.entries(map)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${quote(value)}`)
    .join('\n');
}
