/** What the status of a container tells of its volume mounts. Pure. */
import type { Container, ContainerStatus } from '../../kubernetes/types.ts';

type VolumeMountStatus = NonNullable<ContainerStatus['volumeMounts']>[number];

/**
 * The container's `volumeMounts` in the order of its spec. Read-only ones tell whether what is mounted below
 * them is read-only as well; `IfPossible` depends on the runtime handler.
 */
export function volumeMountStatuses(
  { volumeMounts = [] }: Pick<Container, 'volumeMounts'>,
  recursiveReadOnlySupported: boolean,
): VolumeMountStatus[] {
  return volumeMounts.map(({ name, mountPath, readOnly, recursiveReadOnly }) => {
    if (!readOnly) return { name, mountPath };
    const isRecursive =
      recursiveReadOnly === 'Enabled' || (recursiveReadOnly === 'IfPossible' && recursiveReadOnlySupported);
    return { name, mountPath, readOnly, recursiveReadOnly: isRecursive ? 'Enabled' : 'Disabled' };
  });
}
