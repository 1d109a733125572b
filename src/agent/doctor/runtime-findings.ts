/** What of the container runtime is in the way: its socket, its CRI version, its cgroup driver, its network. */
import { readdir, stat } from 'node:fs/promises';
import type { Clock } from '../../concurrency/clock.ts';
import type { NodeAgentSettings } from '../../config/settings.ts';
import { CriClient } from '../../runtime/cri/cri-client.ts';
import { checkRuntime, type RuntimeFacts, UnsupportedRuntimeError } from '../../runtime/cri/runtime-check.ts';
import { errorText } from '../../telemetry/error-text.ts';
import { silentLogger } from '../../telemetry/logger.ts';
import { silentMetrics } from '../../telemetry/metrics.ts';
import type { Finding } from './finding.ts';

export interface RuntimeQuestion {
  readonly settings: Pick<NodeAgentSettings, 'runtime'> & { readonly cgroups: { readonly driver: string } };
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Where network configurations are; for tests. */
  readonly cniDirectory?: string;
}

const answerWithinMs = 3000;

export async function runtimeFindings(question: RuntimeQuestion): Promise<Finding[]> {
  const { settings, clock, signal, cniDirectory = '/etc/cni/net.d' } = question;
  const { endpoint, imageEndpoint } = settings.runtime;
  const missing = await missingSocket(endpoint);
  if (missing) return [missing];
  const runtime = new CriClient({
    endpoint,
    imageEndpoint,
    clock,
    metrics: silentMetrics,
    requestTimeoutMs: answerWithinMs,
  });
  try {
    const facts = await checkRuntime({
      runtime,
      clock,
      logger: silentLogger,
      signal,
      giveUpAfterMs: answerWithinMs,
    });
    return answerFindings(facts, {
      endpoint,
      configuredDriver: settings.cgroups.driver,
      cniDirectory,
      cniConfigurations: await cniConfigurations(cniDirectory),
    });
  } catch (error) {
    signal.throwIfAborted();
    return [
      {
        check: error instanceof UnsupportedRuntimeError ? 'runtime-version' : 'runtime-answer',
        severity: 'error',
        object: endpoint,
        problem: `The container runtime does not answer as it should: ${errorText(error)}`,
        remedy:
          "See the runtime's own state and log (systemctl status containerd); containerd needs its CRI plugin: " +
          'take "cri" off disabled_plugins in /etc/containerd/config.toml and restart it',
      },
    ];
  } finally {
    await runtime.close();
  }
}

/** Judges what the runtime has answered. Pure. */
export function answerFindings(
  facts: Pick<RuntimeFacts, 'name' | 'cgroupDriver' | 'conditions'>,
  node: {
    readonly endpoint: string;
    readonly configuredDriver: string;
    readonly cniDirectory: string;
    readonly cniConfigurations: readonly string[];
  },
): Finding[] {
  const findings: Finding[] = [];
  const failing = (type: string) => facts.conditions.find((one) => one.type === type && !one.status);
  const runtime = failing('RuntimeReady');
  if (runtime) {
    findings.push({
      check: 'runtime-ready',
      severity: 'error',
      object: node.endpoint,
      problem: `${facts.name} says that it is not ready: ${runtime.reason} ${runtime.message}`.trim(),
      remedy: "See the runtime's log",
    });
  }
  const network = failing('NetworkReady');
  if (network) {
    const none = node.cniConfigurations.length === 0;
    findings.push({
      check: 'cni',
      severity: 'warning',
      object: node.cniDirectory,
      problem: none
        ? 'There is no network configuration (CNI), so only pods on the host network can start'
        : `${facts.name} cannot use the network configuration ${node.cniConfigurations[0]}: ${network.message}`,
      remedy: none
        ? "Install the cluster's network plugin, or put a .conflist file there"
        : "See the runtime's log; the plugins that the file names must be in /opt/cni/bin",
    });
  }
  if (facts.cgroupDriver !== undefined && facts.cgroupDriver !== node.configuredDriver) {
    findings.push({
      check: 'cgroup-driver',
      severity: 'warning',
      object: 'cgroupDriver',
      problem:
        `Configured is ${node.configuredDriver}, while ${facts.name} uses ${facts.cgroupDriver}; the agent follows ` +
        'the runtime, another kubelet on this machine would not',
      remedy: `Set cgroupDriver: ${facts.cgroupDriver} in the --config file, or change the runtime (SystemdCgroup)`,
    });
  }
  return findings;
}

async function missingSocket(endpoint: string): Promise<Finding | undefined> {
  const path = endpoint.replace(/^unix:\/\//, '');
  const why = await stat(path).then(
    (found) => (found.isSocket() ? undefined : 'There is something else than a socket'),
    (error: NodeJS.ErrnoException) =>
      error.code === 'ENOENT'
        ? 'There is no such socket'
        : `The socket cannot be looked at: ${error.message}`,
  );
  if (why === undefined) return undefined;
  return {
    check: 'runtime-socket',
    severity: 'error',
    object: path,
    problem: `${why}, so no container runtime can be reached`,
    remedy: 'Start the runtime (systemctl start containerd), or correct containerRuntimeEndpoint',
  };
}

async function cniConfigurations(directory: string): Promise<string[]> {
  const names = await readdir(directory).catch((): string[] => []);
  return names.filter((name) => /\.(conf|conflist|json)$/.test(name)).sort();
}
