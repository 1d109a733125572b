/** The agent itself: from checked configuration to a running node, until a signal ends it. */
import { type NodeAgentOptions, startNodeAgent } from '../agent/node-agent.ts';
import { PreflightError } from '../agent/preflight.ts';
import { runOnce } from '../agent/run-once.ts';
import { systemClock } from '../concurrency/clock.ts';
import type { GivenFlags } from '../config/flags/flags.ts';
import { KUBERNETES_VERSION } from '../config/kubernetes-version.ts';
import { type LoadedConfiguration, type LoadOptions, loadFromFlags } from '../config/load-configuration.ts';
import { resolveSettings } from '../config/settings.ts';
import { createLogger } from '../telemetry/create-logger.ts';
import { LogOutput } from '../telemetry/log-output.ts';
import type { Logger } from '../telemetry/logger.ts';
import { declareBuildInfo, MetricsRegistry } from '../telemetry/metrics-registry.ts';
import { printErrors } from './print-errors.ts';

export interface RunCommand {
  readonly given: GivenFlags;
  readonly files: LoadOptions;
  readonly color: boolean;
  /** `vX.Y.Z`, where the user wants another version reported than our own. */
  readonly reportedVersion?: string | undefined;
  readonly onStep?: NodeAgentOptions['onStep'];
}

/** Runs until SIGTERM or SIGINT, or until the work of `--runonce` is done; the exit code. */
export async function commandRun({
  given,
  files,
  color,
  reportedVersion,
  onStep,
}: RunCommand): Promise<number> {
  const loaded = loadFromFlags(given, files);
  if (!loaded.ok) {
    process.stderr.write(printErrors(loaded.errors, color));
    return 1;
  }
  const settings = resolveSettings(loaded);
  const output = new LogOutput({
    fd: 2,
    clock: systemClock,
    onLost: (lines) => logger.warn('The log could not be written for a while; lines are missing', { lines }),
  });
  const logger: Logger = createLogger({
    ...settings.log,
    clock: systemClock,
    write: (line) => output.write(line),
  });
  const metrics = new MetricsRegistry();
  const version = (reportedVersion ?? KUBERNETES_VERSION).replace(/^v/, '');
  declareBuildInfo(metrics, { version, gitCommit: '', gitTreeState: '', buildDate: '' });
  warnOf(loaded, logger);
  logger.info('Starting the node agent', { version: KUBERNETES_VERSION, node: process.version });

  const ended = endOfProcess();
  try {
    const agent = await startNodeAgent({
      settings,
      featureEnabled: (gate) => loaded.gates.enabled(gate as Parameters<typeof loaded.gates.enabled>[0]),
      clock: systemClock,
      logger,
      metrics,
      probeMetrics: new MetricsRegistry(),
      ...(onStep && { onStep }),
    });
    logger.info('The node agent is running', { node: agent.nodeName });
    const outcome = settings.runOnce ? runOnce(agent, systemClock) : undefined;
    const code = await Promise.race([ended.then(() => 0), ...(outcome ? [outcome] : [])]);
    await agent.stop();
    logger.info('The node agent has stopped; its pods are left as they are');
    return code;
  } catch (error) {
    for (const problem of error instanceof PreflightError ? error.problems : [(error as Error).message]) {
      logger.error('The node agent cannot start', problem);
    }
    return 1;
  }
}

function warnOf({ warnings, ineffective }: LoadedConfiguration, logger: Logger): void {
  for (const warning of warnings) logger.warn(warning);
  if (ineffective.length > 0) {
    logger.warn('These settings are accepted and have no effect yet', { settings: ineffective });
  }
}

function endOfProcess(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve());
  });
}
