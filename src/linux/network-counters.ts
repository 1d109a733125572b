/** What went through the network interfaces of a network namespace, from `/proc/<pid>/net/dev`. Pure. */

export interface InterfaceCounters {
  readonly name: string;
  readonly rxBytes: number;
  readonly rxPackets: number;
  readonly rxErrors: number;
  readonly rxDropped: number;
  readonly txBytes: number;
  readonly txPackets: number;
  readonly txErrors: number;
  readonly txDropped: number;
}

/** Interfaces that carry what others count already, or nothing of interest; the kubelet leaves them out too. */
const ignored = /^(lo|veth|docker|nerdctl)/;

/** The counters of every interface, in the kernel's order, without loopback, veth and docker bridges. */
export function parseNetworkCounters(text: string): InterfaceCounters[] {
  const found: InterfaceCounters[] = [];
  for (const line of text.split('\n')) {
    const colon = line.lastIndexOf(':');
    if (colon < 0) continue;
    const name = line.slice(0, colon).trim();
    if (ignored.test(name)) continue;
    const fields = line
      .slice(colon + 1)
      .trim()
      .split(/\s+/);
    if (fields.length < 16) continue;
    const at = (index: number) => Number(fields[index]);
    found.push({
      name,
      rxBytes: at(0),
      rxPackets: at(1),
      rxErrors: at(2),
      rxDropped: at(3),
      txBytes: at(8),
      txPackets: at(9),
      txErrors: at(10),
      txDropped: at(11),
    });
  }
  return found;
}

/** The interface of the IPv4 default route, from `/proc/net/route`; `undefined` without one. */
export function defaultRouteInterface(routes: string): string | undefined {
  for (const line of routes.split('\n')) {
    const [name, destination, , flags] = line.split('\t');
    if (destination === '00000000' && (Number.parseInt(flags ?? '0', 16) & 1) === 1) return name;
  }
  return undefined;
}
