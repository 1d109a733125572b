/**
 * How long a runtime call may take. Every call but the pull of an image has a limit, so that a runtime that
 * hangs is noticed; calls that wait for a process get the time of that process on top.
 */
import type { RequestOf, RuntimeCall } from './container-runtime.ts';

/** `runtimeRequestTimeout` when nothing else is configured. */
export const defaultRequestTimeoutMs = 120_000;

type Rule<Call extends RuntimeCall> = (request: RequestOf<Call>, requestTimeoutMs: number) => number;

const rules: { readonly [Call in RuntimeCall]?: Rule<Call> } = {
  runPodSandbox: (_request, base) => 2 * base,
  stopContainer: ({ timeout }, base) => base + seconds(timeout),
  execSync: ({ timeout }, base) => (timeout === 0n ? Number.POSITIVE_INFINITY : base + seconds(timeout)),
  checkpointContainer: ({ timeout }, base) => Math.max(base, seconds(timeout)),
  // A pull is bounded by its progress, not by its length.
  pullImage: () => Number.POSITIVE_INFINITY,
};

function seconds(value: bigint): number {
  return Math.max(0, Number(value)) * 1000;
}

/** Milliseconds that `call` may take; `Infinity` when it has no limit. */
export function callTimeout<Call extends RuntimeCall>(
  call: Call,
  request: RequestOf<Call>,
  requestTimeoutMs: number,
): number {
  const rule = rules[call];
  return rule ? rule(request, requestTimeoutMs) : requestTimeoutMs;
}
