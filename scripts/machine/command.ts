/**
 * Runs a program of the machine and waits for it, always with a time limit. Failures carry what the
 * program said, since that is what a person at the terminal needs.
 */
import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';

/** A program could not be started, failed, or took too long. */
export class CommandFailedError extends Error {
  override name = 'CommandFailedError';
  readonly output: string;
  constructor(message: string, output: string, options: { cause: unknown }) {
    super(message, options);
    this.output = output;
  }
}

/** `sudo` and service managers often leave the administrator's directories out of PATH. */
const searchPath = [
  ...(process.env.PATH ?? '').split(':').filter((directory) => directory !== ''),
  '/usr/local/sbin',
  '/usr/local/bin',
  '/usr/sbin',
  '/usr/bin',
  '/sbin',
  '/bin',
];

/** The directories of PATH and the administrator's ones, in one string. */
export const fullPath = [...new Set(searchPath)].join(':');

/** The absolute path of a program, or undefined; `first` is searched before PATH. */
export function findProgram(name: string, first: readonly string[] = []): string | undefined {
  for (const directory of [...first, ...searchPath]) {
    const file = join(directory, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // Not here: the next directory.
    }
  }
  return undefined;
}

export interface CommandOptions {
  /** Milliseconds until the program is killed; default 60 000. */
  timeout?: number;
  /** Text for its standard input. */
  input?: string;
  env?: NodeJS.ProcessEnv;
  cwd?: string;
}

/** Resolves to the standard output; throws {@link CommandFailedError} otherwise. */
export function runCommand(
  program: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<string> {
  const { timeout = 60_000, input } = options;
  return new Promise((resolve, reject) => {
    const child = execFile(
      program,
      args,
      {
        timeout,
        killSignal: 'SIGKILL',
        maxBuffer: 64 * 1024 * 1024,
        cwd: options.cwd,
        env: { ...(options.env ?? process.env), PATH: fullPath },
      },
      (error, stdout, stderr) => {
        if (error === null) {
          resolve(stdout);
          return;
        }
        const output = `${stdout}${stderr}`.trim();
        const how = error.killed
          ? `took longer than ${timeout / 1000} s`
          : `failed (${error.code ?? 'no code'})`;
        const last = output === '' ? '' : `: ${output.split('\n').slice(-5).join('\n')}`;
        reject(
          new CommandFailedError(`${program} ${args.join(' ')} ${how}${last}`, output, { cause: error }),
        );
      },
    );
    child.stdin?.on('error', () => {});
    child.stdin?.end(input ?? '');
  });
}
