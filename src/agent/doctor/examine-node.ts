/**
 * `kubelet doctor`: everything that would stop this node, or trouble it, found without changing anything. The
 * groups of checks are independent: what breaks one of them is itself a finding.
 */
import { hostname } from 'node:os';
import type { Clock } from '../../concurrency/clock.ts';
import type { NodeAgentSettings } from '../../config/settings.ts';
import { CgroupHierarchy } from '../../linux/cgroupfs.ts';
import { readMachineIdentity } from '../../node/machine-identity.ts';
import { errorText } from '../../telemetry/error-text.ts';
import { clusterFindings } from './cluster-findings.ts';
import { examineMachine } from './examine-machine.ts';
import type { Finding } from './finding.ts';
import { machineFindings } from './machine-findings.ts';
import { portFindings, type WantedPort } from './port-findings.ts';
import { runtimeFindings } from './runtime-findings.ts';

export interface Examination {
  /** What was looked at: `machine`, `runtime`, … */
  readonly name: string;
  readonly findings: readonly Finding[];
}

export interface NodeQuestion {
  readonly settings: NodeAgentSettings;
  /** What the command line of an agent of this installation holds. */
  readonly ownProgram: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export async function examineNode(question: NodeQuestion): Promise<Examination[]> {
  const { settings, clock, signal } = question;
  const groups: Readonly<Record<string, () => Promise<readonly Finding[]>>> = {
    machine: async () => {
      const hierarchy = await CgroupHierarchy.open(clock);
      return machineFindings(await examineMachine(hierarchy, settings.rootDirectory), settings.cgroups);
    },
    runtime: () => runtimeFindings({ settings, clock, signal }),
    ports: () => portFindings(wantedPorts(question), question.ownProgram),
    cluster: () => examineCluster(question),
  };
  return await Promise.all(
    Object.entries(groups).map(async ([name, look]) => ({
      name,
      findings: await look().catch(broken(name)),
    })),
  );
}

async function examineCluster({ settings, clock, signal, environment }: NodeQuestion): Promise<Finding[]> {
  const { cluster, hostnameOverride } = settings;
  if (!cluster) return [];
  return await clusterFindings({
    kubeconfig: cluster.kubeconfig,
    bootstrapKubeconfig: cluster.bootstrapKubeconfig,
    nodeName: hostnameOverride ?? hostname().trim().toLowerCase(),
    machine: readMachineIdentity(cluster.node),
    environment,
    clock,
    signal,
  });
}

function wantedPorts({ settings }: NodeQuestion): WantedPort[] {
  const { healthz, readOnlyServer, nodeServer } = settings;
  return [
    ...(healthz ? [{ ...healthz, server: 'the health checks', setting: 'healthzPort' }] : []),
    ...(readOnlyServer ? [{ ...readOnlyServer, server: 'the read-only API', setting: 'readOnlyPort' }] : []),
    ...(nodeServer ? [{ ...nodeServer, server: 'the kubelet API', setting: 'port' }] : []),
  ];
}

const broken =
  (name: string) =>
  (error: unknown): Finding[] => [
    {
      check: `${name}-examination`,
      severity: 'error',
      object: name,
      problem: `It could not be examined: ${errorText(error)}`,
      remedy: 'Run the doctor as root',
    },
  ];
