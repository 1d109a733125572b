/** The three probes a container can have, and the words Kubernetes uses for them. */
import type { Container, Probe } from '../kubernetes/types.ts';

/** Which of a container's three probes. */
export type ProbeKind = 'startup' | 'liveness' | 'readiness';

/** All kinds of probes. */
export const probeKinds: readonly ProbeKind[] = ['startup', 'liveness', 'readiness'];

/** As events and metric labels spell it. */
export const probeTitle: Readonly<Record<ProbeKind, string>> = {
  startup: 'Startup',
  liveness: 'Liveness',
  readiness: 'Readiness',
};

/** The probe of this kind in a container's spec. */
export function probeOf(container: Container, kind: ProbeKind): Probe | undefined {
  switch (kind) {
    case 'startup':
      return container.startupProbe;
    case 'liveness':
      return container.livenessProbe;
    case 'readiness':
      return container.readinessProbe;
  }
}
