/**
 * One agent and many pods: a test file names all its pods first, a few of them start together, and each test
 * waits for the one it is about while those of the next tests start.
 */
import assert from 'node:assert/strict';
import { mkdirSync, rmSync } from 'node:fs';
import { after, before } from 'node:test';
import type { Container, Pod, PodManifest, PodSpec } from '../../../src/kubernetes/types.ts';
import { Agent, type AgentOptions, shellPod } from '../../e2e/agent.ts';
import { PodWindow } from './pod-window.ts';
import { recordVolume, Timeline } from './recorder.ts';

/** How much of a log a failure shows. */
const shownLines = 60;

/** Tells the window which pod is asked for. */
class WatchedAgent extends Agent {
  readonly #window: PodWindow;

  constructor(options: AgentOptions, window: PodWindow) {
    super(options);
    this.#window = window;
  }

  override pod(name: string): Promise<Pod | undefined> {
    this.#window.reach(name);
    return super.pod(name);
  }
}

export class Scenarios {
  readonly agent: Agent;
  readonly #window = new PodWindow();

  /** Registers the hooks that start the agent with the pods declared meanwhile, and end it. */
  constructor(options: AgentOptions = {}) {
    // Restarts in a loop are to be seen within the patience of a test.
    const configuration = {
      crashLoopBackOff: { maxContainerRestartPeriod: '2s' },
      ...options.configuration,
    };
    this.agent = new WatchedAgent({ ...options, configuration }, this.#window);
    before(async () => {
      await this.agent.start();
      this.#window.open();
    });
    after(() => this.agent.dispose());
  }

  /** Declares a pod that starts with its neighbours; answers its name. */
  pod(name: string, manifest: PodManifest): string {
    this.#window.declare(name, {
      start: () => this.agent.write(name, manifest),
      end: () => rmSync(this.agent.path('manifests', `${name}.json`), { force: true }),
    });
    return name;
  }

  /** A pod of recorded containers. */
  recorded(
    name: string,
    spec: Partial<PodSpec> & { containers: Container[] },
    metadata: Partial<Pod['metadata']> = {},
  ): string {
    const path = this.agent.path('records', name);
    mkdirSync(path, { recursive: true });
    const volumes = [{ name: recordVolume, hostPath: { path, type: 'Directory' } }, ...(spec.volumes ?? [])];
    // Long, so that a busy machine kills nobody who is still on the way.
    const manifest = shellPod(name, '', { terminationGracePeriodSeconds: 120, ...spec, volumes });
    return this.pod(name, { ...manifest, metadata: { ...metadata, name } });
  }

  timeline(name: string): Timeline {
    return Timeline.read(this.agent.path('records', name));
  }

  /** Waits until `is` holds of what the pod has recorded. */
  async untilRecorded(name: string, what: string, is: (timeline: Timeline) => boolean): Promise<Timeline> {
    this.#window.reach(name);
    await this.agent.eventually(
      `${name}: ${what}`,
      async () => is(this.timeline(name)),
      () => this.timeline(name).text,
    );
    return this.timeline(name);
  }

  /** The lines of the agent's log that name the pod, in their order. */
  linesAbout(name: string): string[] {
    return this.agent.log.split('\n').filter((line) => line.includes(`default/${name}-node"`));
  }

  /** Fails unless a line of the agent's log that names the pod matches. */
  logged(name: string, pattern: RegExp): void {
    const lines = this.linesAbout(name);
    const shown = lines.slice(-shownLines).join('\n');
    assert.ok(
      lines.some((line) => pattern.test(line)),
      `nothing like ${pattern} is said of ${name}:\n${shown}`,
    );
  }

  /** Fails when a line of the agent's log that names the pod matches. */
  neverLogged(name: string, pattern: RegExp): void {
    const found = this.linesAbout(name).filter((line) => pattern.test(line));
    assert.deepEqual(found.slice(-shownLines), [], `${pattern} is said of ${name}`);
  }

  phase(name: string, phase: string): Promise<Pod> {
    return this.agent.until(name, phase, ({ status }) => status?.phase === phase);
  }
}

/** The status of a container of any kind. */
export function containerOf(pod: Pod | undefined, name: string) {
  const { initContainerStatuses = [], containerStatuses = [] } = pod?.status ?? {};
  return [...initContainerStatuses, ...containerStatuses].find((status) => status.name === name);
}

export const reasonOf = (pod: Pod | undefined, name: string) =>
  containerOf(pod, name)?.state?.waiting?.reason ?? containerOf(pod, name)?.state?.terminated?.reason;

export function conditionOf(pod: Pod | undefined, type: string) {
  return pod?.status?.conditions?.find((condition) => condition.type === type);
}
