/**
 * Runs a program with a text on its standard input and gives its standard output, within a time limit. What
 * runs longer is killed; the output is bounded.
 */
import { spawn } from 'node:child_process';

export interface PluginRun {
  readonly path: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly input: string;
  readonly timeoutMs: number;
}

/** The program could not be started, failed, took too long or said too much. */
export class PluginProcessError extends Error {
  override readonly name = 'PluginProcessError';
}

const largestOutput = 1024 * 1024;
const shownErrorOutput = 2048;

/** Resolves with the standard output; rejects with {@link PluginProcessError}, or the signal's reason. */
export function runPlugin(run: PluginRun, signal?: AbortSignal): Promise<string> {
  const { path, args, env, input, timeoutMs } = run;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    // A process group of its own, so that what the program has started ends with it.
    const child = spawn(path, args, { env, stdio: ['pipe', 'pipe', 'pipe'], detached: true });
    const output: Buffer[] = [];
    let size = 0;
    let errors = '';
    let failure: unknown;
    const end = (reason: unknown) => {
      failure ??= reason;
      // Whoever holds the pipes would keep us waiting for their end.
      for (const pipe of [child.stdout, child.stderr]) pipe.destroy();
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has ended by itself.
      }
    };
    const onAbort = () => end(signal?.reason);
    const timer = setTimeout(
      () => end(new PluginProcessError(`${path} gave no answer within ${timeoutMs / 1000} s and was killed`)),
      timeoutMs,
    );
    signal?.addEventListener('abort', onAbort, { once: true });
    child.stdout.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > largestOutput) end(new PluginProcessError(`${path} wrote more than ${largestOutput} bytes`));
      else output.push(chunk);
    });
    child.stderr.on('data', (chunk: Buffer) => {
      errors = `${errors}${chunk.toString()}`.slice(-shownErrorOutput);
    });
    // A program may end without reading; its exit code tells whether that is a failure.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
    child.once('error', (cause) => {
      failure ??= new PluginProcessError(`${path} cannot be run: ${cause.message}`, { cause });
    });
    child.once('close', (code, killedBy) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      const said = errors.trim() && `: ${errors.trim()}`;
      if (failure === undefined && code !== 0) {
        failure = new PluginProcessError(
          `${path} ${killedBy ? `was ended by ${killedBy}` : `failed with exit code ${code}`}${said}`,
        );
      }
      if (failure === undefined) resolve(Buffer.concat(output).toString('utf8'));
      else reject(failure);
    });
  });
}
