/** `kubelet config validate FILE [--config-dir DIR]`: checks as a start would, and starts nothing. */
import { describeConfigurationError } from '../config/configuration-error.ts';
import type { GivenFlags } from '../config/flags/flags.ts';
import { type LoadOptions, loadFromFlags } from '../config/load-configuration.ts';
import type { CommandResult } from './command-result.ts';

/** Exit code 1 and a line `file:line: field: message` for each mistake, or 0 and one line that says so. */
export function commandConfigValidate(
  command: { readonly file: string; readonly given: GivenFlags },
  options: LoadOptions,
): CommandResult {
  const result = loadFromFlags({ ...command.given, config: command.file }, options);
  if (!result.ok) {
    return {
      exitCode: 1,
      stdout: '',
      stderr: result.errors.map((error) => `${describeConfigurationError(error)}\n`).join(''),
    };
  }
  const remarks = [
    ...result.warnings.map((warning) => `warning: ${warning}\n`),
    ...result.ineffective.map((name) => `warning: ${name} has no effect yet\n`),
  ];
  return { exitCode: 0, stdout: `${command.file}: ok\n`, stderr: remarks.join('') };
}
