/**
 * Lifecycle hooks: what a container wants done after its start or before its stop. A hook runs a command in
 * the container, asks an HTTP endpoint of the pod, or waits. Hooks never outlive their signal.
 */
import { type Clock, sleep } from '../../concurrency/clock.ts';
import type { Container, LifecycleHandler } from '../../kubernetes/types.ts';
import type { ContainerRuntime } from '../../runtime/container-runtime.ts';
import { HookError } from './hook-error.ts';
import type { HookMetrics } from './hook-metrics.ts';
import { askHttpHook } from './http-hook.ts';

/** What hooks are run with. */
export interface HookServices {
  readonly runtime: Pick<ContainerRuntime, 'execSync'>;
  readonly hookMetrics: HookMetrics;
  readonly clock: Clock;
}

/** One run of a hook. */
export interface HookCall {
  readonly handler: LifecycleHandler;
  readonly container: Pick<Container, 'name' | 'ports'>;
  readonly containerId: string;
  /** Where an HTTP hook without a host goes. */
  readonly podIp: string | undefined;
  /** Whole seconds the runtime lets a command run; 0 for no limit. */
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal;
  /** Told when an HTTPS hook was answered in plain HTTP. */
  readonly onHttpFallback: (host: string) => void;
}

/** How much of a failed command's output is told. */
const shownOutput = 1024;

/** Resolves when the hook is done. Rejects with {@link HookError}, a runtime error, or the signal's reason. */
export async function runLifecycleHook(
  call: HookCall,
  { runtime, hookMetrics, clock }: HookServices,
): Promise<void> {
  const { handler, container, containerId, signal } = call;
  if (handler.exec) {
    const cmd = handler.exec.command ?? [];
    const request = { containerId, cmd, timeout: BigInt(call.timeoutSeconds) };
    const { exitCode, stderr, stdout } = await runtime.execSync(request, { signal });
    if (exitCode === 0) return;
    const output = Buffer.concat([stdout, stderr]).toString('utf8').trim().slice(0, shownOutput);
    throw new HookError(
      `command ${JSON.stringify(cmd)} exited with ${exitCode}${output ? `: ${output}` : ''}`,
    );
  }
  if (handler.httpGet) {
    await askHttpHook({
      get: handler.httpGet,
      container,
      podIp: call.podIp,
      signal,
      onFallback(host) {
        hookMetrics.httpFallback();
        call.onHttpFallback(host);
      },
    });
    return;
  }
  if (handler.sleep) {
    await sleep(clock, handler.sleep.seconds * 1000, signal).catch((error: unknown) => {
      hookMetrics.sleepCutShort();
      throw error;
    });
    return;
  }
  throw new HookError('the hook has no handler this node can run (exec, httpGet or sleep)');
}
