/**
 * The pod asks for something no container can be made from. The container waits with reason
 * `CreateContainerConfigError` and this message, and is tried again with the pod.
 */
export class ContainerConfigError extends Error {
  override readonly name = 'ContainerConfigError';
}
