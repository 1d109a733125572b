/**
 * `--runonce`: starts every pod, waits until each has shown what it can do, prints what became of it, and
 * leaves the pods running.
 */
import { type Clock, sleep } from '../concurrency/clock.ts';
import { podKey } from '../kubernetes/pod-identity.ts';
import type { Pod, PodStatus } from '../kubernetes/types.ts';
import type { RunningAgent } from './node-agent.ts';

/** Failed starts after which a container is given up on. */
const maxRestarts = 5;

export type RunOnceVerdict =
  | { readonly kind: 'ran'; readonly detail: string }
  | { readonly kind: 'failed'; readonly detail: string }
  | { readonly kind: 'pending' };

/** What can be said of a pod so far. A pod that runs for ever has run once it is ready. */
export function runOnceVerdict(pod: Pod, status: PodStatus | undefined): RunOnceVerdict {
  if (status?.phase === 'Succeeded') return { kind: 'ran', detail: 'succeeded' };
  if (status?.phase === 'Failed') {
    return { kind: 'failed', detail: status.message ?? status.reason ?? 'a container ended with an error' };
  }
  const all = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  for (const { name, state, restartCount, lastState } of all) {
    const waiting = state?.waiting;
    if (waiting && hopeless.has(waiting.reason ?? '')) {
      return { kind: 'failed', detail: `container ${name}: ${waiting.reason}: ${waiting.message ?? ''}` };
    }
    if (restartCount >= maxRestarts) {
      const code = (state?.terminated ?? lastState?.terminated)?.exitCode;
      return {
        kind: 'failed',
        detail: `container ${name} keeps ending, last with exit code ${code ?? 'unknown'}`,
      };
    }
  }
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
  if (ready && pod.spec.restartPolicy === 'Always') return { kind: 'ran', detail: 'running' };
  return { kind: 'pending' };
}

const hopeless = new Set([
  'InvalidImageName',
  'ErrImageNeverPull',
  'ImagePullBackOff',
  'CreateContainerConfigError',
]);

/** Resolves to 0 when every pod of every manifest ran, and no manifest was unusable; to 1 otherwise. */
export async function runOnce(agent: RunningAgent, clock: Clock): Promise<number> {
  const { workers, sources } = agent;
  for (;;) {
    const verdicts = [...sources.pods.values()].map((pod) => {
      const worker = workers.get(pod.metadata.uid);
      return { pod, verdict: runOnceVerdict(pod, worker?.status) };
    });
    const decided = sources.ready && verdicts.every(({ verdict }) => verdict.kind !== 'pending');
    if (!decided) {
      // Nothing waits for this loop; it only watches.
      await sleep(clock, 200);
      continue;
    }
    for (const { pod, verdict } of verdicts) {
      if (verdict.kind !== 'pending')
        process.stdout.write(`${podKey(pod)}\t${verdict.kind}\t${verdict.detail}\n`);
    }
    for (const { origin } of sources.errors)
      process.stdout.write(`${origin}\tfailed\tthe manifest cannot be used\n`);
    const allRan = verdicts.every(({ verdict }) => verdict.kind === 'ran') && sources.errors.length === 0;
    return allRan ? 0 : 1;
  }
}
