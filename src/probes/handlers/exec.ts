/**
 * The exec probe: a command in the container through the runtime; exit code 0 is a success.
 *
 * The runtime ends the process when its time is up, and what it has started ends with it (see
 * `exec-leftovers.ts`). It counts in whole seconds; a time-out below that, and a
 * runtime that does not keep time, is cut short from this side: the call is cancelled, on which runtimes kill
 * the process as well. Either way the probe has failed.
 */
import { failure, isTimeUp, outputLimit, type ProbeOutcome, success, unknown } from '../probe-outcome.ts';

/** What the probe needs of the runtime: CRI's ExecSync. */
export interface ExecSync {
  execSync(
    /** `timeout` in seconds. */
    request: { containerId: string; cmd: string[]; timeout: bigint },
    options?: { readonly signal?: AbortSignal },
  ): Promise<{ readonly stdout: Uint8Array; readonly stderr: Uint8Array; readonly exitCode: number }>;
}

/** How much longer than its time-out a call may take before it is given up, when the runtime keeps time. */
const runtimeSlackMs = 1000;

/** The deadline of the whole attempt, milliseconds. */
export function execDeadlineMs(timeoutMs: number): number {
  return timeoutMs % 1000 === 0 ? timeoutMs + runtimeSlackMs : timeoutMs;
}

/** Never rejects. */
export async function probeExec(
  target: {
    readonly exec: ExecSync;
    readonly containerId: string;
    readonly command: readonly string[];
    readonly timeoutMs: number;
    /** Ends what the command leaves behind when its time is up. */
    readonly leftovers?: { kill(): Promise<unknown> } | undefined;
  },
  signal: AbortSignal,
): Promise<ProbeOutcome> {
  const { containerId, command, timeoutMs } = target;
  const request = { containerId, cmd: [...command], timeout: BigInt(Math.ceil(timeoutMs / 1000)) };
  try {
    const answer = await orAborted(target.exec.execSync(request, { signal }), signal);
    const output = combined(answer.stdout, answer.stderr);
    if (answer.exitCode === 0) return success(output);
    // Differs from the kubelet, whose message is empty when the command said nothing.
    return failure(output || `command "${command.join(' ')}" exited with code ${answer.exitCode}`);
  } catch (error) {
    if (isTimeUp(signal) || isDeadlineExceeded(error)) {
      await target.leftovers?.kill();
      return failure(`command timed out: "${command.join(' ')}" timed out after ${timeoutMs / 1000}s`);
    }
    return unknown(error instanceof Error ? error.message : String(error));
  }
}

/** A call that ignores its signal must not keep the probe from running ever again. */
function orAborted<T>(call: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    call.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

function combined(stdout: Uint8Array, stderr: Uint8Array): string {
  const kept = [
    stdout.subarray(0, outputLimit),
    stderr.subarray(0, Math.max(0, outputLimit - stdout.length)),
  ];
  return Buffer.concat(kept).toString();
}

/** The runtime's word for a process whose time was up. */
function isDeadlineExceeded(error: unknown): boolean {
  return error instanceof Error && 'deadlineExceeded' in error && error.deadlineExceeded === true;
}
