/**
 * Which images may go, and in which order. Pure. An image that any container is made from, running or dead,
 * ours or somebody else's, never goes; neither does one that the runtime has pinned, nor the sandboxes'.
 */

/** An image as the runtime lists it; `size` in bytes, `pinned` images are never removed. */
export interface ImageOnNode {
  readonly id: string;
  /** Tags and digests. */
  readonly names: readonly string[];
  readonly size: number;
  readonly pinned: boolean;
}

/** What is remembered of an image; times are epoch milliseconds. */
export interface ImageUse {
  readonly firstSeen: number;
  /** Absent: never used since it was first seen. */
  readonly lastUsed?: number;
}

/** Uses by image id. */
export type ImageUses = Readonly<Record<string, ImageUse>>;

/** When images go. */
export interface ImageRules {
  /** `imageGCHighThresholdPercent`: disk use from which images are removed. 100: never for space. */
  readonly highPercent: number;
  /** `imageGCLowThresholdPercent`: disk use they are removed down to. */
  readonly lowPercent: number;
  /** `imageMinimumGCAge` */
  readonly minAgeMs: number;
  /** `imageMaximumGCAge`; 0: unused images may grow old. */
  readonly maxAgeMs: number;
}

/** Bytes. */
export interface DiskSpace {
  readonly capacity: number;
  readonly available: number;
}

/** False when the rules never remove anything. */
export function collectsImages({ highPercent, maxAgeMs }: ImageRules): boolean {
  return highPercent < 100 || maxAgeMs > 0;
}

/** Whether a reference of `references` means the image. */
export function isReferenced({ id, names }: ImageOnNode, references: ReadonlySet<string>): boolean {
  return references.has(id) || names.some((name) => references.has(name));
}

/** What is remembered after a look at the node: new images are noted, used ones are stamped, others forgotten. */
export function noteUses(
  before: ImageUses,
  images: readonly ImageOnNode[],
  inUse: ReadonlySet<string>,
  now: number,
): ImageUses {
  const entries = images.map((image): [string, ImageUse] => {
    const known = Object.hasOwn(before, image.id) ? before[image.id] : undefined;
    // A clock that was wrong must not keep an image for ever.
    const firstSeen = Math.min(known?.firstSeen ?? now, now);
    const lastUsed = isReferenced(image, inUse) ? now : known?.lastUsed;
    return [image.id, { firstSeen, ...(lastUsed !== undefined && { lastUsed: Math.min(lastUsed, now) }) }];
  });
  return Object.fromEntries(entries);
}

/**
 * Images that nobody needs, the least recently used first, then the longest known. `uses` are those of
 * {@link noteUses} for the same images.
 */
export function removableImages(
  images: readonly ImageOnNode[],
  uses: ImageUses,
  needed: ReadonlySet<string>,
  { minAgeMs, now }: { readonly minAgeMs: number; readonly now: number },
): ImageOnNode[] {
  const lastUsed = ({ id }: ImageOnNode) => uses[id]?.lastUsed ?? 0;
  const firstSeen = ({ id }: ImageOnNode) => uses[id]?.firstSeen ?? now;
  return images
    .filter(
      (image) =>
        !image.pinned && !isReferenced(image, needed) && now - lastTouched(uses[image.id], now) >= minAgeMs,
    )
    .toSorted((a, b) => lastUsed(a) - lastUsed(b) || firstSeen(a) - firstSeen(b));
}

/** Of the removable images, those that have been unused for longer than any image should. */
export function expiredImages(
  removable: readonly ImageOnNode[],
  uses: ImageUses,
  { maxAgeMs, now }: { readonly maxAgeMs: number; readonly now: number },
): ImageOnNode[] {
  if (maxAgeMs <= 0) return [];
  return removable.filter(({ id }) => now - lastTouched(uses[id], now) > maxAgeMs);
}

/** Bytes to free so that disk use comes down to the low threshold; 0 while it is below the high one. */
export function bytesToFree({ capacity, available }: DiskSpace, rules: ImageRules): number {
  const free = Math.min(available, capacity);
  const usedPercent = 100 - Math.trunc((free * 100) / capacity);
  if (rules.highPercent >= 100 || usedPercent < rules.highPercent) return 0;
  return Math.max(0, Math.trunc((capacity * (100 - rules.lowPercent)) / 100) - free);
}

/**
 * Differs from the kubelet: the minimum age counts from the last use as well, so that an image a container
 * is just being made from stays.
 */
function lastTouched(use: ImageUse | undefined, now: number): number {
  return Math.max(use?.firstSeen ?? now, use?.lastUsed ?? 0);
}
