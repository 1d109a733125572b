/** Keeps the CPU shares of the QoS classes as the pods want them that are active. */
import { LatestOnly } from '../concurrency/latest-only.ts';
import type { PodCgroups } from '../resources/pod-cgroups.ts';
import type { AgentContext } from './agent-context.ts';

/** To be refreshed whenever a pod has come or gone. */
export function keepQosClasses(
  { settings, logger, signal, rooms }: AgentContext,
  cgroups: Pick<PodCgroups, 'updateQos'>,
): LatestOnly {
  return new LatestOnly(
    async () => {
      if (!settings.cgroups.perQos) return;
      const active = [...(rooms.workers?.all() ?? [])].filter(({ memory }) => memory.terminal === undefined);
      await cgroups.updateQos(
        active.map(({ pod }) => pod),
        signal,
      );
    },
    (error) => {
      if (!signal.aborted) logger.error('Setting the CPU shares of QoS classes failed', error);
    },
  );
}
