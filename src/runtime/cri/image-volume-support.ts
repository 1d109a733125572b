/**
 * Whether a runtime can mount images as volumes. CRI has no word for it: a runtime that does not know the
 * field passes over it and mounts something else, or fails with a message nobody understands. Pure.
 */
import type { RuntimeFacts } from './runtime-check.ts';

/** Where it begins; of runtimes that are not here it is assumed. */
const since: Readonly<Record<string, readonly [major: number, minor: number]>> = {
  containerd: [2, 1],
  'cri-o': [1, 31],
  docker: [Number.POSITIVE_INFINITY, 0],
};

/** What is missing and what can be done; `undefined` when the runtime mounts images. */
export function imageVolumesMissing({
  name,
  version,
}: Pick<RuntimeFacts, 'name' | 'version'>): string | undefined {
  const needed = since[name];
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  if (needed === undefined || major === undefined) return undefined;
  const isEnough = Number(major) > needed[0] || (Number(major) === needed[0] && Number(minor) >= needed[1]);
  if (isEnough) return undefined;
  return `${name} ${version} cannot mount images; it takes containerd 2.1 or CRI-O 1.31, or later`;
}
