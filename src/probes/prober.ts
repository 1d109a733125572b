/**
 * Liveness, readiness and startup of every container of the node.
 *
 * How it is put in place: the agent calls `update` with a pod, what the runtime shows of it and whether it is
 * ending, whenever one of them may have changed, and takes the health from its answer (or from `health`
 * later). Calling it again with nothing new costs a comparison for each container. `onChange` says that the
 * health of a pod has changed for another reason; the pod is then to be looked at again. `forget` when
 * nothing is left of the pod.
 *
 * Guarantees:
 * - Probes belong to a container instance. With the instance they end, and nothing that was still on its way
 *   has any effect on a later one.
 * - What probes cost: a place in a heap while waiting, one timer for all that wait, and one for each run in
 *   flight. No run of a probe starts while the former one is under way.
 * - After a restart of the agent, a container keeps what was last known of it until its probes say otherwise.
 * - Nothing a container, a handler or the runtime does makes a method throw.
 */
import type { Clock } from '../concurrency/clock.ts';
import { type ContainerPlace, podContainers } from '../kubernetes/init-containers.ts';
import type { Pod } from '../kubernetes/types.ts';
import { type EventRecorder, podEventObject } from '../telemetry/events.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { ContainerProbes, type ProbedContainer } from './container-probes.ts';
import type { ContainerHealth } from './container-verdict.ts';
import { DueQueue } from './due-queue.ts';
import type { ExecSync } from './handlers/exec.ts';
import type { ContainerProcesses } from './handlers/exec-leftovers.ts';
import { probeKinds, probeOf } from './probe-kind.ts';
import type { ProbeMemory } from './probe-memory.ts';
import { ProbeReports } from './probe-reports.ts';
import { ProbeRunner } from './probe-runner.ts';
import { readTimingAnnotation, type TimingOverrides, timingAnnotation } from './timing-annotation.ts';

/** What probes are run with, and whom they tell. */
export interface ProberOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly events: EventRecorder;
  /** The registry behind `/metrics/probes`. */
  readonly metrics: Metrics;
  readonly exec: ExecSync;
  /** Where exec probes find what they have left behind; without it, that stays. */
  readonly processes?: ContainerProcesses;
  readonly memory: ProbeMemory;
  /** Addresses of the node at the moment, for pods on its network; the first one counts, as of the last update. */
  readonly hostIps: readonly string[];
  /** The health of a pod has changed. Not called for changes that `update` answers. */
  readonly onChange: (podUid: string) => void;
}

/** What the runtime shows of a pod, as far as probes care. */
export interface ProbedPod {
  /** Newest first. */
  readonly sandboxes: readonly {
    readonly id: string;
    readonly ips: readonly string[];
    readonly hostNetwork: boolean;
  }[];
  /** Newest first. */
  readonly containers: readonly {
    readonly id: string;
    readonly name: string;
    readonly sandboxId: string;
    readonly state: 'Created' | 'Running' | 'Exited' | 'Unknown';
    /** Epoch milliseconds. */
    readonly createdAt: number;
    readonly startedAt?: number;
  }[];
}

/** How a pod stands now. */
export interface ProberUpdate {
  readonly pod: Pod;
  readonly observed: ProbedPod;
  /** The pod is ending, for whatever reason: only readiness is probed from now on. */
  readonly terminating: boolean;
  /** Whether the postStart hook of a container that has one is still to end; its probes wait for that. */
  hookPending?(containerId: string): boolean;
  /** Whether the pod goes on only until its main containers have stopped: its sidecars are then ending, too. */
  sidecarsEnd?(): boolean;
}

/** By container id; containers without probes and ones that do not run are not in it. */
export type PodHealth = Readonly<Record<string, ContainerHealth>>;

const nothing: PodHealth = Object.freeze({});

interface PodEntry {
  pod: Pod;
  /** The containers that have probes. */
  places: readonly ContainerPlace[];
  overrides: TimingOverrides;
  /** The annotation whose mistakes were told. */
  toldOf: string | undefined;
  readonly containers: Map<string, ContainerProbes>;
  /** Ids of containers that were seen running before their probes might begin. */
  readonly held: Set<string>;
  health: PodHealth;
}

/** All probes of all pods. */
export class Prober {
  readonly #options: ProberOptions;
  readonly #queue: DueQueue;
  readonly #runner: ProbeRunner;
  readonly #reports: ProbeReports;
  readonly #pods = new Map<string, PodEntry>();
  #updating: string | undefined;

  constructor(options: ProberOptions) {
    this.#options = options;
    this.#queue = new DueQueue(options.clock);
    this.#runner = new ProbeRunner(options);
    this.#reports = new ProbeReports(options);
  }

  /** Starts, stops and adapts probes to what is; answers the pod's health. */
  update(update: ProberUpdate): PodHealth {
    const { uid } = update.pod.metadata;
    const entry = this.#entry(update.pod);
    if (entry.places.length === 0 && entry.containers.size === 0) return nothing;
    this.#updating = uid;
    const running = new Set<string>();
    let changed = false;
    for (const place of entry.places) {
      const instance = update.observed.containers.find(({ name }) => name === place.container.name);
      if (instance?.state !== 'Running') continue;
      running.add(instance.id);
      if (place.container.lifecycle?.postStart && update.hookPending?.(instance.id)) {
        entry.held.add(instance.id);
        continue;
      }
      const { pod } = update;
      const terminating = update.terminating || (place.kind === 'sidecar' && update.sidecarsEnd?.() === true);
      const podIp = this.#podIp(update.observed, instance.sandboxId);
      const now = { pod, place, podIp, terminating, overrides: entry.overrides };
      const known = entry.containers.get(instance.id);
      if (known) {
        const before = known.health;
        known.update(now);
        changed ||= known.health !== before;
        continue;
      }
      const startedAt = instance.startedAt ?? instance.createdAt;
      const openSince = entry.held.delete(instance.id) ? this.#options.clock.now() : startedAt;
      entry.containers.set(instance.id, this.#create(uid, now, { id: instance.id, startedAt, openSince }));
      changed = true;
    }
    for (const [id, probes] of entry.containers) {
      if (running.has(id)) continue;
      probes.close();
      entry.containers.delete(id);
      this.#options.memory.forget(id);
      changed = true;
    }
    for (const id of entry.held) if (!running.has(id)) entry.held.delete(id);
    this.#updating = undefined;
    if (changed) entry.health = healthOf(entry);
    return entry.health;
  }

  health(podUid: string): PodHealth {
    return this.#pods.get(podUid)?.health ?? nothing;
  }

  /** Nothing is left of the pod. */
  forget(podUid: string): void {
    const entry = this.#pods.get(podUid);
    if (!entry) return;
    this.#pods.delete(podUid);
    for (const [id, probes] of entry.containers) {
      probes.close();
      this.#options.memory.forget(id);
    }
  }

  /** Ends every probe without a word about any container, when the agent stops. */
  close(): void {
    for (const { containers } of this.#pods.values()) {
      for (const probes of containers.values()) probes.close();
    }
    this.#pods.clear();
    this.#queue.close();
  }

  #entry(pod: Pod): PodEntry {
    const { uid } = pod.metadata;
    const known = this.#pods.get(uid);
    if (known?.pod === pod) return known;
    const fresh = {
      pod,
      places: probedPlaces(pod),
      overrides: readTimingAnnotation(pod),
    };
    const entry = known
      ? Object.assign(known, fresh)
      : {
          ...fresh,
          toldOf: undefined,
          containers: new Map<string, ContainerProbes>(),
          held: new Set<string>(),
          health: nothing,
        };
    this.#pods.set(uid, entry);
    this.#tellMistakes(entry);
    return entry;
  }

  #tellMistakes(entry: PodEntry): void {
    const { pod, overrides } = entry;
    const text = pod.metadata.annotations?.[timingAnnotation];
    if (overrides.problems.length === 0 || entry.toldOf === text) return;
    entry.toldOf = text;
    const message = `Annotation ${timingAnnotation} has no effect where it is wrong: ${overrides.problems.join('; ')}`;
    this.#options.events.event(podEventObject(pod), 'Warning', 'InvalidProbeTiming', message);
  }

  #create(
    uid: string,
    now: ProbedContainer,
    { id, startedAt, openSince }: { id: string; startedAt: number; openSince: number },
  ): ContainerProbes {
    const { clock, memory } = this.#options;
    return new ContainerProbes(now, {
      containerId: id,
      startedAt,
      openSince,
      remembered: memory.recall(id),
      clock,
      queue: this.#queue,
      runner: this.#runner,
      reports: this.#reports,
      onHealth: ({ started, ready }) => {
        memory.remember(id, { started, ready });
        const entry = this.#pods.get(uid);
        if (!entry || this.#updating === uid) return;
        entry.health = healthOf(entry);
        this.#options.onChange(uid);
      },
    });
  }

  #podIp({ sandboxes }: ProbedPod, sandboxId: string): string | undefined {
    const sandbox = sandboxes.find(({ id }) => id === sandboxId);
    if (sandbox?.hostNetwork) return this.#options.hostIps[0] ?? '127.0.0.1';
    return sandbox?.ips[0];
  }
}

function probedPlaces({ spec }: Pod): ContainerPlace[] {
  return [...podContainers(spec)].filter(
    ({ container, kind }) =>
      (kind === 'regular' || kind === 'sidecar') &&
      probeKinds.some((probe) => probeOf(container, probe) !== undefined),
  );
}

function healthOf({ containers }: PodEntry): PodHealth {
  return Object.fromEntries([...containers].map(([id, { health }]) => [id, health]));
}
