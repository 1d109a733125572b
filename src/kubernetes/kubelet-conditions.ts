/** The conditions of a pod that the kubelet decides; all others in its status belong to somebody else. */
const types: ReadonlySet<string> = new Set([
  'PodReadyToStartContainers',
  'Initialized',
  'Ready',
  'ContainersReady',
  'PodScheduled',
  'AllContainersRestarting',
]);

export const isKubeletCondition = (type: string): boolean => types.has(type);
