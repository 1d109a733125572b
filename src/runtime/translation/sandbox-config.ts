/**
 * A pod as the sandbox its containers will live in (CRI `PodSandboxConfig`). The same message goes with
 * every CreateContainer of the pod.
 */
import { dottedSysctl } from '../../kubernetes/sysctl-name.ts';
import type { Pod } from '../../kubernetes/types.ts';
import type { DNSConfig, PodSandboxConfig } from '../generated/cri.ts';
import { sandboxLabels } from './annotations.ts';
import { type CpuQuotaSettings, sandboxOverhead, sandboxResources } from './linux-resources.ts';
import { podNamespaces, type UserNamespaceRange } from './namespaces.ts';
import { portMappings } from './port-mappings.ts';
import { sandboxSecurityContext } from './security-context.ts';

/** A pod and what the node has worked out for it. */
export interface SandboxConfigInput {
  readonly pod: Pod;
  /** One above the newest sandbox's, 0 for the first. */
  readonly attempt: number;
  /** What the kernel should call the pod; not used on the host's network. */
  readonly hostname: string;
  /** Absolute path of the pod's log directory. */
  readonly logDirectory: string;
  /** `undefined` leaves name resolution to the runtime. */
  readonly dns: DNSConfig | undefined;
  /** The pod's cgroup, as the cgroup driver names it. */
  readonly cgroupParent: string;
  readonly cpuQuota: CpuQuotaSettings;
  /** True when a container of the pod has CPUs of its own. */
  readonly hasExclusiveCpus?: boolean | undefined;
  readonly userNamespace?: UserNamespaceRange | undefined;
  readonly volumeGids?: readonly number[] | undefined;
}

/** The message that RunPodSandbox takes. Pure: the same input gives the same message. */
export function sandboxConfig(input: SandboxConfigInput): PodSandboxConfig {
  const { pod, attempt, hostname, logDirectory, dns, cgroupParent, cpuQuota } = input;
  const { metadata, spec } = pod;
  return {
    metadata: { name: metadata.name, namespace: metadata.namespace, uid: metadata.uid, attempt },
    hostname: spec.hostNetwork ? '' : hostname,
    logDirectory,
    dnsConfig: dns,
    portMappings: portMappings(spec),
    labels: sandboxLabels(pod),
    annotations: { ...metadata.annotations },
    linux: {
      cgroupParent,
      securityContext: sandboxSecurityContext({
        spec,
        namespaces: podNamespaces(spec, input.userNamespace),
        volumeGids: input.volumeGids,
      }),
      sysctls: Object.fromEntries(
        (spec.securityContext?.sysctls ?? []).map(({ name, value }) => [dottedSysctl(name), value]),
      ),
      overhead: sandboxOverhead(pod, cpuQuota),
      resources: sandboxResources(pod, cpuQuota, input.hasExclusiveCpus),
    },
  };
}
