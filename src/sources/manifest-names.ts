/**
 * Which names in a manifest directory are manifests.
 *
 * Differs from the kubelet, which skips only names that start with a dot: an editor's swap, backup and
 * probe files are skipped too. There, the backup of a manifest starts the pod a second time, or fails as a
 * duplicate.
 */

const editorNames = [
  // Backup copies: vi, emacs, nano, joe.
  /~$/,
  // Swap files of vi in all their endings (`.swp`, `.swo`, `.swx`), and of those without the leading dot.
  /\.sw[a-px]$/,
  // Autosave files of emacs.
  /^#.*#$/,
  // vi makes a file of this name to see whether it may write in the directory.
  /^4913$/,
];

/** True when a file of this name in the manifest directory is not to be read. */
export function isIgnoredName(name: string): boolean {
  return name.startsWith('.') || editorNames.some((pattern) => pattern.test(name));
}
