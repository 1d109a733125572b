/**
 * CPU requests and limits, and huge page sizes, in the units the kernel's cgroups take. Pure; the same for the
 * cgroups of pods, which the agent limits, and for those of containers, which the runtime limits.
 */

/** The least share a cgroup can have; what goes without a request gets it. */
export const minCpuShares = 2;
const maxCpuShares = 262_144;
/** The kernel takes no shorter quota, microseconds. */
const minQuotaUs = 1000;

/** CPU shares (`cpu.shares` of cgroup v1) of a request in thousandths of a CPU: 1024 a CPU, 2 for none. */
export function cpuShares(milliCpu: number): number {
  return Math.min(Math.max(Math.floor((milliCpu * 1024) / 1000), minCpuShares), maxCpuShares);
}

/** Microseconds of CPU time in each period of a limit in thousandths of a CPU, at least 1000; 0 without a limit. */
export function cpuQuota(milliCpu: number, periodUs: number): number {
  return milliCpu > 0 ? Math.max(Math.floor((milliCpu * periodUs) / 1000), minQuotaUs) : 0;
}

/** The hugetlb controller's name of a page size: `64KB`, `2MB`, `1GB`. */
export function hugePageSizeName(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'];
  let size = bytes;
  let unit = 0;
  while (size >= 1024 && size % 1024 === 0 && unit < units.length - 1) {
    size /= 1024;
    unit++;
  }
  return `${size}${units[unit]}`;
}
