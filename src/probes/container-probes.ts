/**
 * The probes of one container instance: opens and closes them as the startup probe and the end of the pod
 * command, and holds what they say together.
 */
import type { Clock } from '../concurrency/clock.ts';
import type { ContainerPlace } from '../kubernetes/init-containers.ts';
import type { Container, Pod } from '../kubernetes/types.ts';
import { type ContainerHealth, containerVerdict, sameHealth } from './container-verdict.ts';
import type { DueQueue } from './due-queue.ts';
import { type ProbeKind, probeKinds, probeOf } from './probe-kind.ts';
import type { RememberedHealth } from './probe-memory.ts';
import type { ProbeReport, ProbeReports } from './probe-reports.ts';
import type { ProbeRunner } from './probe-runner.ts';
import { probeRhythm } from './probe-schedule.ts';
import { initialState, type ProbeState, type Verdict } from './probe-state.ts';
import { type ProbeTiming, probeTiming } from './probe-timing.ts';
import { ProbeWorker } from './probe-worker.ts';
import type { TimingOverrides } from './timing-annotation.ts';

/** The instance, as it is now. */
export interface ProbedContainer {
  readonly pod: Pod;
  readonly place: ContainerPlace;
  readonly podIp: string | undefined;
  readonly overrides: TimingOverrides;
  readonly terminating: boolean;
}

/** The container, and whom its probes tell. */
export interface ContainerProbesOptions {
  readonly containerId: string;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  /** From when on probes may run: the start, or later. Epoch milliseconds. */
  readonly openSince: number;
  /** What an earlier agent knew of the instance. */
  readonly remembered: RememberedHealth | undefined;
  readonly clock: Clock;
  readonly queue: DueQueue;
  readonly runner: ProbeRunner;
  readonly reports: ProbeReports;
  readonly onHealth: (health: ContainerHealth) => void;
}

interface OpenedProbe {
  readonly worker: ProbeWorker;
  readonly report: ProbeReport;
}

/** All probes of one container instance, from its start to its end. */
export class ContainerProbes {
  readonly #options: ContainerProbesOptions;
  readonly #probes = new Map<ProbeKind, OpenedProbe>();
  #now: ProbedContainer;
  #health: ContainerHealth;

  constructor(container: ProbedContainer, options: ContainerProbesOptions) {
    this.#options = options;
    this.#now = container;
    for (const kind of probeKinds) {
      if (probeOf(container.place.container, kind)) this.#probes.set(kind, this.#createProbe(kind));
    }
    const { health, open } = this.#verdict();
    this.#health = health;
    this.#openAndClose(open, options.openSince);
  }

  get health(): ContainerHealth {
    return this.#health;
  }

  update(container: ProbedContainer): void {
    const before = this.#now;
    this.#now = container;
    if (container.pod !== before.pod) {
      for (const [kind, { worker }] of this.#probes) worker.retime(this.#timing(kind));
    }
    if (container.terminating !== before.terminating) this.#judge();
  }

  /** The instance is gone: nothing in flight has any effect any more. */
  close(): void {
    for (const { worker, report } of this.#probes.values()) {
      worker.stop();
      report.end();
    }
  }

  #createProbe(kind: ProbeKind): OpenedProbe {
    const { clock, queue, runner, reports, containerId } = this.#options;
    const report = reports.of({ ...this.#now, kind });
    const worker: ProbeWorker = new ProbeWorker({
      clock,
      queue,
      initial: this.#initialState(kind),
      timing: this.#timing(kind),
      rhythm: (openAt, timing) =>
        probeRhythm({
          kind,
          handler: this.#probe(kind).exec ? 'exec' : 'network',
          timing,
          containerId,
          openAt,
        }),
      run: ({ timeoutMs }, signal) => {
        const { podIp } = this.#now;
        const subject = { container: this.#container, containerId, podIp };
        return runner.run({ probe: this.#probe(kind), subject, timeoutMs, signal });
      },
      onOutcome: (outcome, run) => report.outcome({ ...this.#now, kind }, outcome, run),
      onVerdict: () => this.#judge(),
    });
    return { worker, report };
  }

  #initialState(kind: ProbeKind): ProbeState {
    const { remembered } = this.#options;
    const succeeded =
      (kind === 'startup' && remembered?.started) || (kind === 'readiness' && remembered?.ready);
    return succeeded ? initialState(kind, 'success') : initialState(kind);
  }

  #judge(): void {
    const { health, open } = this.#verdict();
    const changed = !sameHealth(health, this.#health);
    this.#health = health;
    this.#openAndClose(open, this.#options.clock.now());
    if (changed) this.#options.onHealth(health);
  }

  /** `since`: from when on what is open now may run. */
  #openAndClose(open: Readonly<Record<ProbeKind, boolean>>, since: number): void {
    const { startedAt, clock } = this.#options;
    // A start in the future is another clock's opinion.
    const start = Math.min(startedAt, clock.now());
    for (const [kind, { worker }] of this.#probes) {
      if (open[kind])
        worker.start(Math.max(Math.min(since, clock.now()), start + this.#timing(kind).initialDelayMs));
      else worker.stop();
    }
  }

  #verdict() {
    const verdicts: Partial<Record<ProbeKind, Verdict>> = {};
    const graceSeconds: Partial<Record<ProbeKind, number>> = {};
    for (const [kind, { worker }] of this.#probes) {
      verdicts[kind] = worker.verdict;
      const grace = this.#probe(kind).terminationGracePeriodSeconds;
      if (grace !== undefined) graceSeconds[kind] = grace;
    }
    return containerVerdict({ verdicts, graceSeconds, terminating: this.#now.terminating });
  }

  get #container(): Container {
    return this.#now.place.container;
  }

  #probe(kind: ProbeKind) {
    return probeOf(this.#container, kind) ?? {};
  }

  #timing(kind: ProbeKind): ProbeTiming {
    return probeTiming(this.#probe(kind), this.#now.overrides.of(this.#container.name, kind));
  }
}
