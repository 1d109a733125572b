/** Names of block devices by their numbers, from `/proc/partitions`. Pure. */
export function parseBlockDevices(text: string): Map<string, string> {
  const names = new Map<string, string>();
  for (const [, major, minor, name] of text.matchAll(/^\s*(\d+)\s+(\d+)\s+\d+\s+(\S+)$/gm)) {
    names.set(`${major}:${minor}`, `/dev/${name}`);
  }
  return names;
}
