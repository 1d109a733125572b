/** The configuration of the agent under measurement: everything below one directory and one cgroup. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../scripts/demo/free-port.ts';

export interface AgentPorts {
  readonly health: number;
  readonly pods: number;
  readonly main: number;
}

export async function freePorts(): Promise<AgentPorts> {
  return { health: await freePort(0), pods: await freePort(0), main: await freePort(0) };
}

export interface AgentPlace {
  readonly directory: string;
  /** Name of the cgroup that all pods go into; it exists. */
  readonly cgroup: string;
  /** `unix://` endpoint of the runtime. */
  readonly endpoint: string;
  /** Directory of the manifests. */
  readonly manifests: string;
  readonly ports: AgentPorts;
}

/** Writes the configuration file; returns the flags to start with. */
export function agentFlags({ directory, cgroup, endpoint, manifests, ports }: AgentPlace): string[] {
  const podLogsDir = join(directory, 'logs');
  mkdirSync(podLogsDir, { recursive: true });
  const configuration = {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
    authorization: { mode: 'AlwaysAllow' },
    address: '127.0.0.1',
    port: ports.main,
    healthzPort: ports.health,
    readOnlyPort: ports.pods,
    failCgroupV1: false,
    failSwapOn: false,
    cgroupDriver: 'cgroupfs',
    cgroupRoot: `/${cgroup}`,
    containerRuntimeEndpoint: endpoint,
    podLogsDir,
    staticPodPath: manifests,
    logging: { format: 'json' },
  };
  const file = join(directory, 'kubelet.json');
  writeFileSync(file, JSON.stringify(configuration));
  return [
    `--config=${file}`,
    `--root-dir=${join(directory, 'kubelet')}`,
    `--cert-dir=${join(directory, 'pki')}`,
    '--hostname-override=bench-node',
    // The bench follows the agent by its log.
    '-v=4',
  ];
}
