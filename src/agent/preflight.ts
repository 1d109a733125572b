/**
 * What would keep the agent from working here, found before anything is touched: the doctor's checks of the
 * machine. Errors refuse the start, as with a kubelet; warnings are told once.
 */
import type { CgroupHierarchy } from '../linux/cgroupfs.ts';
import type { Logger } from '../telemetry/logger.ts';
import { examineMachine } from './doctor/examine-machine.ts';
import { findingText } from './doctor/finding.ts';
import { type MachineHealth, type MachineRules, machineFindings } from './doctor/machine-findings.ts';

/** The machine does not fit the configuration; each problem names its remedy. */
export class PreflightError extends Error {
  override readonly name = 'PreflightError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

/** Looks at the machine. Rejects with {@link PreflightError}. */
export async function preflight(options: {
  readonly hierarchy: CgroupHierarchy;
  readonly settings: { readonly rootDirectory: string; readonly cgroups: MachineRules };
  readonly logger: Logger;
}): Promise<void> {
  const { hierarchy, settings, logger } = options;
  judge(await examineMachine(hierarchy, settings.rootDirectory), settings.cgroups, logger);
}

/** Throws {@link PreflightError} with everything that stops the agent; tells what only troubles it. */
export function judge(machine: MachineHealth, rules: MachineRules, logger: Logger): void {
  const findings = machineFindings(machine, rules);
  const problems = findings.filter(({ severity }) => severity === 'error').map(findingText);
  if (problems.length > 0) throw new PreflightError(problems);
  for (const finding of findings)
    logger.warn('Something may trouble this node', { problem: findingText(finding) });
}
