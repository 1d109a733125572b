/** Admission by ports of the node: two pods cannot listen on the same one. */
import { podContainers } from '../../kubernetes/init-containers.ts';
import type { PodSpec } from '../../kubernetes/types.ts';
import type { AdmissionHandler } from './admission.ts';

interface HostPort {
  readonly ip: string;
  readonly protocol: string;
  readonly port: number;
}

const everyAddress = '0.0.0.0';

/** Refuses a port of the node that another pod has. */
export const refuseHostPorts: AdmissionHandler = ({ spec }, { others }) => {
  const wanted = [...hostPorts(spec)];
  if (wanted.length === 0) return undefined;
  const isFree = others.every((other) =>
    [...hostPorts(other.spec)].every((taken) => !wanted.some((port) => conflict(port, taken))),
  );
  return isFree
    ? undefined
    : {
        reason: 'NodePorts',
        message: "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
      };
};

/** Those of containers that run side by side; an init container is gone before the others listen. */
function* hostPorts(spec: PodSpec): Generator<HostPort> {
  for (const { container, kind } of podContainers(spec)) {
    if (kind !== 'regular' && kind !== 'sidecar') continue;
    for (const { hostPort, hostIP, protocol } of container.ports ?? []) {
      if (hostPort) yield { ip: hostIP || everyAddress, protocol: protocol || 'TCP', port: hostPort };
    }
  }
}

function conflict(a: HostPort, b: HostPort): boolean {
  if (a.port !== b.port || a.protocol !== b.protocol) return false;
  return a.ip === b.ip || a.ip === everyAddress || b.ip === everyAddress;
}
