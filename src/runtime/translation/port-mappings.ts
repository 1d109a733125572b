/**
 * Ports of the regular containers as the runtime wants them. Every port is listed, also those without a
 * port on the host (`hostPort` 0).
 */
import type { ContainerPort, PodSpec } from '../../kubernetes/types.ts';
import { type PortMapping, Protocol } from '../generated/cri.ts';

/** Ports of all containers for the network of the sandbox, each once within a container. */
export function portMappings(spec: PodSpec): PortMapping[] {
  return spec.containers.flatMap((container) => {
    const seen = new Set<string>();
    return (container.ports ?? []).map(portMapping).filter((mapping) => {
      const key = JSON.stringify(Object.values(mapping));
      return !seen.has(key) && seen.add(key);
    });
  });
}

function portMapping(port: ContainerPort): PortMapping {
  return {
    protocol: protocolOf(port.protocol),
    containerPort: port.containerPort,
    hostPort: port.hostPort ?? 0,
    hostIp: port.hostIP ?? '',
  };
}

function protocolOf(name: string | undefined): Protocol {
  if (name === 'UDP') return Protocol.UDP;
  return name === 'SCTP' ? Protocol.SCTP : Protocol.TCP;
}
