/** The processes of a container, found by its cgroup: the one below its pod's that carries its id. */
import type { Pod } from '../kubernetes/types.ts';
import type { CgroupHierarchy } from '../linux/cgroupfs.ts';
import { killProcess, readProcess, ticksNow } from '../linux/processes.ts';
import type { ContainerProcesses } from '../probes/handlers/exec-leftovers.ts';

export interface ContainerProcessesRooms {
  readonly hierarchy: Pick<CgroupHierarchy, 'children' | 'processes'>;
  /** The cgroup of the pod that has the container; `undefined` when there is none of its own. */
  readonly podCgroup: (containerId: string) => string | undefined;
}

/** The cgroup of a container's pod, from who knows the pods and who knows their cgroups. */
export function podCgroupOf(rooms: {
  readonly podOf: (containerId: string) => string | undefined;
  readonly pod: (uid: string) => Pod | undefined;
  readonly pathOf: (pod: Pod) => string;
}): ContainerProcessesRooms['podCgroup'] {
  return (containerId) => {
    const uid = rooms.podOf(containerId);
    const pod = uid === undefined ? undefined : rooms.pod(uid);
    return pod && rooms.pathOf(pod);
  };
}

export function containerProcesses({ hierarchy, podCgroup }: ContainerProcessesRooms): ContainerProcesses {
  return {
    async list(containerId) {
      const parent = podCgroup(containerId);
      if (parent === undefined) return [];
      const name = (await hierarchy.children(parent)).find((child) => child.includes(containerId));
      if (name === undefined) return [];
      const pids = await hierarchy.processes(`${parent}/${name}`);
      const found = await Promise.all(pids.filter((pid) => pid > 0).map(readProcess));
      return found.filter((process) => process !== undefined);
    },
    kill: killProcess,
    ticksNow,
  };
}
