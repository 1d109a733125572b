/** The cgroup a process is in, from `/proc/<pid>/cgroup`. Pure. */

/** By memory on v1, where every controller has a tree of its own; `undefined` for the root or none. */
export function cgroupOfProcess(text: string, version: 1 | 2): string | undefined {
  for (const line of text.split('\n')) {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers === undefined || path === undefined) continue;
    const isIt = version === 2 ? controllers === '' : controllers.split(',').includes('memory');
    if (isIt) return path === '/' ? undefined : path;
  }
  return undefined;
}
