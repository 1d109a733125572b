/** The agent itself: from checked configuration to a running node, until a signal ends it. */
import type { NodeAgentOptions } from '../agent/agent-context.ts';
import { type RunningAgent, startNodeAgent } from '../agent/node-agent.ts';
import { PreflightError } from '../agent/preflight.ts';
import { runOnce } from '../agent/run-once.ts';
import { systemClock } from '../concurrency/clock.ts';
import { flagTexts } from '../config/flags/flag-texts.ts';
import type { GivenFlags } from '../config/flags/flags.ts';
import { KUBERNETES_VERSION } from '../config/kubernetes-version.ts';
import { type LoadedConfiguration, type LoadOptions, loadFromFlags } from '../config/load-configuration.ts';
import { resolveSettings } from '../config/settings.ts';
import { shownConfiguration } from '../config/shown-configuration.ts';
import { createLogger, type RootLogger } from '../telemetry/create-logger.ts';
import { LogOutput } from '../telemetry/log-output.ts';
import type { Logger } from '../telemetry/logger.ts';
import { printErrors } from './print-errors.ts';
import { programMetrics } from './program-metrics.ts';

export interface RunCommand {
  readonly given: GivenFlags;
  readonly files: LoadOptions;
  readonly color: boolean;
  /** `vX.Y.Z`, where the user wants another version reported than our own. */
  readonly reportedVersion?: string | undefined;
  readonly onStep?: NodeAgentOptions['onStep'];
}

/**
 * Runs until SIGTERM or SIGINT, or until the work of `--runonce` is done; the exit code. Ends with 1 as well
 * when a part of the agent breaks: whoever supervises it starts it anew, and pods run on meanwhile.
 */
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
  const logger: RootLogger = createLogger({
    ...settings.log,
    clock: systemClock,
    write: (line) => output.write(line),
  });
  const version = `v${(reportedVersion ?? KUBERNETES_VERSION).replace(/^v/, '')}`;
  const { metrics, probeMetrics } = programMetrics(loaded.gates, version);
  warnOf(loaded, logger);
  logger.info('Starting the node agent', { version: KUBERNETES_VERSION, node: process.version });

  const { signal, ended } = endOfProcess();
  // An agent that serves no port and waits for its runtime has nothing else that keeps the process alive.
  const alive = setInterval(() => {}, 2 ** 31 - 1);
  try {
    return await runAgent({
      settings,
      featureEnabled: (gate) => loaded.gates.enabled(gate as Parameters<typeof loaded.gates.enabled>[0]),
      clock: systemClock,
      logger,
      metrics,
      probeMetrics,
      logProblem: () => output.problem,
      about: {
        configuration: shownConfiguration(loaded.configuration),
        flags: flagTexts(given),
        version,
        startedAt: Date.now(),
        setVerbosity: (verbosity) => logger.setVerbosity(verbosity),
      },
      ...(onStep && { onStep }),
      signal,
      ended,
    });
  } finally {
    clearInterval(alive);
  }
}

/** Starts the agent and stops it when its time has come; the exit code. */
async function runAgent(
  options: NodeAgentOptions & { readonly signal: AbortSignal; readonly ended: Promise<void> },
): Promise<number> {
  const { settings, logger, signal, ended } = options;
  let agent: RunningAgent;
  try {
    agent = await startNodeAgent(options);
  } catch (error) {
    if (signal.aborted) {
      logger.info('The node agent was stopped while it started');
      return 0;
    }
    for (const problem of error instanceof PreflightError ? error.problems : [(error as Error).message]) {
      logger.error('The node agent cannot start', problem);
    }
    return 1;
  }
  logger.info('The node agent is running', { node: agent.nodeName });
  const broken = agent.broken.then((error) => {
    logger.error('A part of the agent has broken; the agent ends, to be started anew', error);
    return 1;
  });
  const outcome = settings.runOnce ? [runOnce(agent, systemClock)] : [];
  const code = await Promise.race([ended.then(() => 0), broken, ...outcome]);
  try {
    await agent.stop();
  } catch (error) {
    logger.error('Something went wrong while the node agent stopped', error);
  }
  logger.info('The node agent has stopped; its pods are left as they are');
  return code;
}

function warnOf({ warnings, ineffective }: LoadedConfiguration, logger: Logger): void {
  for (const warning of warnings) logger.warn(warning);
  if (ineffective.length > 0) {
    logger.warn('These settings are accepted and have no effect yet', { settings: ineffective });
  }
}

/** SIGTERM and SIGINT end the process in order, also while it starts; the same a second time ends it at once. */
function endOfProcess(): { signal: AbortSignal; ended: Promise<void> } {
  const stop = new AbortController();
  const ended = new Promise<void>((resolve) => {
    for (const name of ['SIGTERM', 'SIGINT'] as const) {
      process.once(name, () => {
        stop.abort(new Error(`stopped by ${name}`));
        resolve();
      });
    }
  });
  return { signal: stop.signal, ended };
}
