/**
 * A kernel parameter's name with dots between its parts, whichever of `.` and `/` it was written with. In
 * `net/ipv4/conf/eth0.5/x` the slash separates, so the dot is part of a name and becomes a slash.
 */
export function dottedSysctl(name: string): string {
  const separator = /[./]/.exec(name)?.[0];
  if (separator !== '/') return name;
  return name.replace(/[./]/g, (character) => (character === '/' ? '.' : '/'));
}
