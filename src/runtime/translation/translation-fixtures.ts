/**
 * Pods and nodes for the tests of translation: plain ones, with what a test is about put over them.
 */
import assert from 'node:assert/strict';
import type { Container, Pod, PodSpec } from '../../kubernetes/types.ts';
import type { ContainerConfig, PodSandboxConfig } from '../generated/cri.ts';
import { type ContainerConfigInput, containerConfig } from './container-config.ts';
import type { NodeResourceSettings } from './linux-resources.ts';
import { type SandboxConfigInput, sandboxConfig } from './sandbox-config.ts';

export const mebi = 2 ** 20;
export const gibi = 2 ** 30;
export const main: Container = { name: 'main', image: 'nginx:1' };

export function podOf(spec: Partial<PodSpec> = {}, metadata: Partial<Pod['metadata']> = {}): Pod {
  return {
    metadata: { name: 'web', namespace: 'shop', uid: 'u-1', ...metadata },
    spec: {
      containers: [main],
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'ClusterFirst',
      ...spec,
    },
  };
}

export const cpuQuotaSettings = { enabled: true, periodUs: 100_000 };

export function sandbox(
  spec: Partial<PodSpec> = {},
  input: Partial<SandboxConfigInput> = {},
): PodSandboxConfig {
  return sandboxConfig({
    pod: podOf(spec),
    attempt: 0,
    hostname: 'web',
    logDirectory: '/var/log/pods/shop_web_u-1',
    dns: { servers: ['10.0.0.10'], searches: ['shop.svc'], options: ['ndots:5'] },
    cgroupParent: '/kubepods/pod-u-1',
    cpuQuota: cpuQuotaSettings,
    ...input,
  });
}

export const node: NodeResourceSettings = {
  cgroupVersion: 2,
  nodeMemoryBytes: 8 * gibi,
  cpuQuota: cpuQuotaSettings,
  hugePageSizes: [],
  swap: { controllerAvailable: true, behavior: 'NoSwap', totalBytes: 4 * gibi },
  singleProcessOomKill: false,
};

export interface Given extends Partial<Omit<ContainerConfigInput, 'pod' | 'container'>> {
  spec?: Partial<PodSpec>;
  metadata?: Partial<Pod['metadata']>;
}

export function container(own: Partial<Container> = {}, given: Given = {}): ContainerConfig {
  const { spec, metadata, ...input } = given;
  const one = { ...main, ...own };
  return containerConfig({
    pod: podOf({ containers: [one], ...spec }, metadata),
    container: one,
    restartCount: 0,
    imageRef: 'sha256:1',
    imageUser: {},
    environment: new Map(),
    mounts: [],
    resources: node,
    security: { rootDirectory: '/var/lib/kubelet', seccompDefault: false, thermalThrottlePaths: [] },
    ...input,
  });
}

export const securityOf = (own: Container['securityContext'], given: Given = {}) => {
  const config = container(own ? { securityContext: own } : {}, given);
  assert.ok(config.linux?.securityContext);
  return config.linux.securityContext;
};
export const resourcesOf = (resources: Container['resources'], given: Given = {}) => {
  const config = container(resources ? { resources } : {}, given);
  assert.ok(config.linux?.resources);
  return config.linux.resources;
};
