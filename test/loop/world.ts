/** What outlives an agent in the tests of the loop: time, the runtime, and a directory for the disk. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { VirtualClock } from '../../src/concurrency/virtual-clock.ts';
import { containerAnnotations } from '../../src/kubernetes/pod-identity.ts';
import type { Pod, PodManifest, PodSpec } from '../../src/kubernetes/types.ts';
import { nextBackoffAnnotation } from '../../src/pods/restart-backoff.ts';
import { ContainerState } from '../../src/runtime/generated/cri.ts';
import { staticPod } from '../../src/sources/static-pod.ts';
import { FakeRuntime } from '../fixtures/cri-runtime/fake-runtime.ts';

/** Flushing to a real disk would take most of the time. */
const memoryDisk = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

export class World {
  readonly clock = new VirtualClock();
  readonly root = mkdtempSync(path.join(memoryDisk, 'kubelet-ts-loop-'));
  readonly runtime = new FakeRuntime({
    clock: this.clock,
    images: ['web', 'setup', 'proxy', 'job'],
    registry: ['remote'],
    writeLogs: true,
  });

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }

  /** Sandboxes and containers without what differs between two equal runs: ids, addresses and times. */
  snapshot(): { sandboxes: string[]; containers: string[] } {
    const podOf = new Map(
      this.runtime.sandboxes.map(({ id, config }) => [id, config.metadata?.name ?? ''] as const),
    );
    return {
      sandboxes: this.runtime.sandboxes.map(
        ({ config, ready }) =>
          `${config.metadata?.name}/${config.metadata?.attempt} ${ready ? 'ready' : 'stopped'}`,
      ),
      containers: this.runtime.containers
        .map(({ sandboxId, name, config, state, exitCode }) => {
          const backoff = config.annotations[nextBackoffAnnotation];
          const count = config.annotations[containerAnnotations.restartCount];
          return `${podOf.get(sandboxId)}/${name}/${config.metadata?.attempt} ${stateNames[state]} ${exitCode} restarts ${count} back-off ${backoff}`;
        })
        .sort(),
    };
  }
}

const stateNames: Readonly<Record<number, string>> = {
  [ContainerState.CONTAINER_CREATED]: 'created',
  [ContainerState.CONTAINER_RUNNING]: 'running',
  [ContainerState.CONTAINER_EXITED]: 'exited',
};

/** A static pod as the file source hands it in. */
export function filePod(
  name: string,
  spec: Partial<PodSpec> = {},
  metadata: Partial<Pod['metadata']> = {},
): Pod {
  const manifest: PodManifest = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: { containers: [{ name: 'web', image: 'web', imagePullPolicy: 'IfNotPresent' }], ...spec },
  };
  const { pod, problems } = staticPod(manifest, {
    source: 'file',
    origin: `/manifests/${name}.yaml`,
    nodeName: 'node',
    seenAt: 0,
    featureEnabled: () => false,
  });
  if (!pod) throw new Error(`manifest ${name}: ${JSON.stringify(problems)}`);
  return pod;
}
