/** Where the parts of the system beside the pods are among the cgroups, as statistics tell of them. */
import { readFile } from 'node:fs/promises';
import { SingleFlight } from '../concurrency/single-flight.ts';
import { cgroupOfProcess } from '../linux/process-cgroup.ts';
import { socketOwner } from '../linux/socket-owner.ts';
import type { SystemGroup } from '../stats/node-sample.ts';

/** Programs that serve CRI, by their names in procfs. */
const runtimePrograms = ['containerd', 'crio', 'cri-dockerd'];

export interface GivenCgroups {
  readonly endpoint: string;
  /** The runtime's; undefined: the one its socket's owner is in. */
  readonly runtime: string | undefined;
  /** Where processes of the system are kept (`systemCgroups`), told of as `misc`. */
  readonly misc: string | undefined;
  readonly pods: Readonly<Record<'pods' | 'burstable' | 'besteffort', string>> | undefined;
}

/**
 * The cgroups of the system beside the pods': looked for when somebody asks, and again when the runtime was
 * started anew.
 */
export class SystemCgroups {
  readonly #version: 1 | 2;
  readonly #given: GivenCgroups;
  readonly #finding = new SingleFlight<void>();
  #runtimePid: number | undefined;
  #groups = new Map<SystemGroup, string>();

  constructor(version: 1 | 2, given: GivenCgroups) {
    this.#version = version;
    this.#given = given;
  }

  known(): ReadonlyMap<SystemGroup, string> {
    return this.#groups;
  }

  find(): Promise<void> {
    return this.#finding.run('all', () => this.#find());
  }

  async #find(): Promise<void> {
    const { runtime, misc, pods } = this.#given;
    const [own, ofRuntime] = await Promise.all([
      this.#cgroupOf('self'),
      runtime === undefined ? this.#runtimeCgroup() : runtime,
    ]);
    const groups = new Map<SystemGroup, string>();
    if (own !== undefined) groups.set('kubelet', own);
    if (ofRuntime !== undefined) groups.set('runtime', ofRuntime);
    if (misc !== undefined) groups.set('misc', misc);
    for (const [name, path] of Object.entries(pods ?? {})) groups.set(name as SystemGroup, path);
    this.#groups = groups;
  }

  async #runtimeCgroup(): Promise<string | undefined> {
    const known = this.#runtimePid;
    const before = known === undefined ? undefined : await this.#cgroupOf(String(known));
    if (before !== undefined) return before;
    const socket = this.#given.endpoint.replace(/^unix:\/\//, '');
    this.#runtimePid = await socketOwner(socket, { programs: runtimePrograms }).catch(() => undefined);
    return this.#runtimePid === undefined ? undefined : await this.#cgroupOf(String(this.#runtimePid));
  }

  async #cgroupOf(pid: string): Promise<string | undefined> {
    const text = await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '');
    return cgroupOfProcess(text, this.#version);
  }
}
