/** `kubelet doctor [-o json] [flags]`: what would stop this node, or trouble it, and what to do about it. */
import pc from 'picocolors';
import { type Examination, examineNode } from '../agent/doctor/examine-node.ts';
import { systemClock } from '../concurrency/clock.ts';
import type { GivenFlags } from '../config/flags/flags.ts';
import { type LoadOptions, loadFromFlags } from '../config/load-configuration.ts';
import { resolveSettings } from '../config/settings.ts';
import type { CommandResult } from './command-result.ts';
import { printErrors } from './print-errors.ts';

export interface DoctorCommand {
  readonly given: GivenFlags;
  readonly output: 'text' | 'json';
  readonly files: LoadOptions;
  readonly color: boolean;
}

/** Exit code 1 when something would stop the node, or the configuration itself is wrong. */
export async function commandDoctor({ given, output, files, color }: DoctorCommand): Promise<CommandResult> {
  const loaded = loadFromFlags(given, files);
  if (!loaded.ok) return { exitCode: 1, stdout: '', stderr: printErrors(loaded.errors, color) };
  const examinations = await examineNode({
    settings: resolveSettings(loaded),
    ownProgram: process.argv[1] ?? process.execPath,
    environment: process.env,
    clock: systemClock,
    signal: new AbortController().signal,
  });
  return doctorReport(examinations, output, color);
}

/** Pure. */
export function doctorReport(
  examinations: readonly Examination[],
  output: 'text' | 'json',
  color: boolean,
): CommandResult {
  const findings = examinations.flatMap((examination) => examination.findings);
  const errors = findings.filter(({ severity }) => severity === 'error').length;
  const exitCode = errors > 0 ? 1 : 0;
  if (output === 'json') {
    return { exitCode, stdout: `${JSON.stringify({ ok: errors === 0, findings }, null, 2)}\n`, stderr: '' };
  }
  const colors = pc.createColors(color);
  const marks = { error: colors.red('error  '), warning: colors.yellow('warning') };
  const lines = examinations.flatMap(({ name, findings: own }) => {
    if (own.length === 0) return [`${colors.green('ok     ')} ${name}`];
    return own.flatMap(({ severity, object, problem, remedy }) => [
      `${marks[severity]} ${name}: ${object}: ${problem}`,
      `        ${remedy}`,
    ]);
  });
  return {
    exitCode,
    stdout: `${lines.join('\n')}\n${verdict(errors, findings.length - errors)}\n`,
    stderr: '',
  };
}

function verdict(errors: number, warnings: number): string {
  const count = (n: number, what: string) => `${n} ${what}${n === 1 ? '' : 's'}`;
  if (errors > 0) return `The node would not work: ${count(errors, 'error')}, ${count(warnings, 'warning')}.`;
  return warnings > 0 ? `The node would work, with ${count(warnings, 'warning')}.` : 'Nothing is in the way.';
}
