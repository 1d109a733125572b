/** A mount of a container in the words of no runtime: what volumes plan and a runtime is told. */

/** Which way mounts made below a mount travel between node and container. */
export type MountPropagation = 'None' | 'HostToContainer' | 'Bidirectional';

export interface ContainerMount {
  /** Path in the container; made absolute. */
  readonly containerPath: string;
  /** Path on the node; empty for image volumes. */
  readonly hostPath: string;
  readonly readOnly?: boolean | undefined;
  /** Mounts below it are read-only too. */
  readonly recursiveReadOnly?: boolean | undefined;
  /** `None` when absent. */
  readonly propagation?: MountPropagation | undefined;
  /** The runtime shall give the files the SELinux label of the container. */
  readonly selinuxRelabel?: boolean | undefined;
  /** An image volume: the reference the image was pulled as, and the path in it. */
  readonly image?: { readonly reference: string; readonly subPath?: string | undefined } | undefined;
}
