/** The executable: what the command line asks for, then the exit code. */
import { commandConfigValidate } from './cli/command-config-validate.ts';
import { commandDoctor } from './cli/command-doctor.ts';
import { commandHelp } from './cli/command-help.ts';
import type { CommandResult } from './cli/command-result.ts';
import { commandRun } from './cli/command-run.ts';
import { commandVersion, type ProductVersion, printVersion } from './cli/command-version.ts';
import { parseCommand } from './cli/parse-command.ts';
import { printErrors } from './cli/print-errors.ts';
import { diskFiles } from './config/disk-files.ts';

const files = { cwd: process.cwd(), ...diskFiles };

const version: ProductVersion = {
  product: process.env['KUBELET_TS_VERSION'] ?? 'development',
  node: process.version,
  platform: `${process.platform}/${process.arch}`,
};

async function main(argv: readonly string[]): Promise<number> {
  const command = parseCommand(argv);
  const color = process.stderr.isTTY;
  switch (command.kind) {
    case 'help':
      return print(commandHelp({ width: process.stdout.columns ?? 100, color: process.stdout.isTTY }));
    case 'print-version':
      return print(printVersion(command.form, version));
    case 'version':
      return print(commandVersion(version));
    case 'config-validate':
      return print(commandConfigValidate(command, files));
    case 'doctor':
      return print(await commandDoctor({ ...command, files, color: process.stdout.isTTY }));
    case 'invalid':
      return print({ exitCode: 1, stdout: '', stderr: printErrors(command.errors, color) });
    case 'run':
      return commandRun({ ...command, files, color });
  }
}

function print({ exitCode, stdout, stderr }: CommandResult): number {
  process.stdout.write(stdout);
  process.stderr.write(stderr);
  return exitCode;
}

main(process.argv.slice(2)).then(
  // Everything has been let go of in order; a connection that was just being made keeps nobody waiting.
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
