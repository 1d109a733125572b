/**
 * `--runonce`: starts every pod, waits until each has shown what it can do, prints what became of it, and
 * leaves the pods running.
 *
 * A pod has run when it has succeeded or stands: each of its containers runs or has ended well. One that is
 * to run for ever stands as soon as it is ready. One that may end, and one that does not get ready, stands
 * once its containers have run for a while. Everything comes to a verdict in the end.
 *
 * Differs from the kubelet, for which one look at running containers was enough: a container that falls at
 * its first step has not run.
 */
import { type Clock, sleep } from '../concurrency/clock.ts';
import { podKey } from '../kubernetes/pod-identity.ts';
import type { ContainerStatus, Pod, PodStatus } from '../kubernetes/types.ts';
import type { RunningAgent } from './node-agent.ts';

/** Failed starts after which a container is given up on. */
const maxRestarts = 5;

/** How long containers run that are not known to be ready, or may end, before they count as running. */
const standsAfterMs = 10_000;

/** Ten tries after 1 s, 2 s, 4 s and so on, after which the kubelet gave a pod up. */
const giveUpAfterMs = 1000 * (2 ** 10 - 1);

/** Nothing waits for the loop that watches. */
const lookEveryMs = 200;

/** What is known of a pod: `ran` and `failed` are for good. */
export type RunOnceVerdict =
  | { readonly kind: 'ran'; readonly detail: string }
  | { readonly kind: 'failed'; readonly detail: string }
  | { readonly kind: 'pending' };

/** When it is now and when the watching began, epoch milliseconds. */
export interface RunOnceTime {
  readonly now: number;
  readonly since: number;
}

/** What can be said of a pod so far. */
export function runOnceVerdict(pod: Pod, status: PodStatus | undefined, time: RunOnceTime): RunOnceVerdict {
  if (status?.phase === 'Succeeded') return { kind: 'ran', detail: 'succeeded' };
  if (status?.phase === 'Failed') {
    return { kind: 'failed', detail: status.message ?? status.reason ?? 'a container ended with an error' };
  }
  const mains = status?.containerStatuses ?? [];
  const all = [...(status?.initContainerStatuses ?? []), ...mains];
  const hopelessOne = all.map(hopelessness).find((detail) => detail !== undefined);
  if (hopelessOne !== undefined) return { kind: 'failed', detail: hopelessOne };

  const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
  if (ready && pod.spec.restartPolicy === 'Always') return { kind: 'ran', detail: 'running' };
  if (
    mains.length === pod.spec.containers.length &&
    mains.every((container) => stands(container, time.now))
  ) {
    return { kind: 'ran', detail: ready ? 'running' : 'running, not ready' };
  }
  if (time.now - time.since < giveUpAfterMs) return { kind: 'pending' };
  return { kind: 'failed', detail: `not running after ${giveUpAfterMs / 1000} s: ${held(all)}` };
}

/** Why nothing can be hoped for from the container; `undefined` while something can. */
function hopelessness({ name, state, restartCount, lastState }: ContainerStatus): string | undefined {
  const { reason = '', message = '' } = state?.waiting ?? {};
  if (hopeless.has(reason)) return `container ${name}: ${reason}: ${message}`;
  if (restartCount < maxRestarts) return undefined;
  const code = (state?.terminated ?? lastState?.terminated)?.exitCode;
  return `container ${name} keeps ending, last with exit code ${code ?? 'unknown'}`;
}

const hopeless = new Set([
  'InvalidImageName',
  'ErrImageNeverPull',
  'ImagePullBackOff',
  'CreateContainerConfigError',
]);

function stands({ state }: ContainerStatus, now: number): boolean {
  if (state?.terminated) return state.terminated.exitCode === 0;
  const startedAt = Date.parse(state?.running?.startedAt ?? '');
  return now - startedAt >= standsAfterMs;
}

/** What the containers that do not run wait for. */
function held(containers: readonly ContainerStatus[]): string {
  const waiting = containers.flatMap(({ name, state }) => {
    if (state?.running) return [];
    return [`container ${name}: ${state?.waiting?.reason ?? state?.terminated?.reason ?? 'unknown'}`];
  });
  return waiting.join(', ') || 'its containers have not run for long enough';
}

/** As much of the agent as a single run looks at. */
export interface WatchedAgent {
  readonly sources: Pick<RunningAgent['sources'], 'pods' | 'ready' | 'errors'>;
  readonly workers: { get(uid: string): { readonly status: PodStatus | undefined } | undefined };
}

/** Resolves to 0 when every pod of every manifest ran, and no manifest was unusable; to 1 otherwise. */
export async function runOnce(
  { workers, sources }: WatchedAgent,
  clock: Clock,
  print: (line: string) => void = (line) => process.stdout.write(`${line}\n`),
): Promise<number> {
  const since = clock.now();
  for (;;) {
    const time = { now: clock.now(), since };
    const verdicts = [...sources.pods.values()].map((pod) => {
      return { pod, verdict: runOnceVerdict(pod, workers.get(pod.metadata.uid)?.status, time) };
    });
    const decided = sources.ready && verdicts.every(({ verdict }) => verdict.kind !== 'pending');
    if (!decided) {
      await sleep(clock, lookEveryMs);
      continue;
    }
    for (const { pod, verdict } of verdicts) {
      if (verdict.kind !== 'pending') print(`${podKey(pod)}\t${verdict.kind}\t${verdict.detail}`);
    }
    for (const { origin } of sources.errors) print(`${origin}\tfailed\tthe manifest cannot be used`);
    const allRan = verdicts.every(({ verdict }) => verdict.kind === 'ran') && sources.errors.length === 0;
    return allRan ? 0 : 1;
  }
}
