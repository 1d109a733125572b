/**
 * A real containerd keeps the contract. Runs when the environment names one:
 *
 *   KUBELET_TS_TEST_CONTAINERD   its endpoint, such as unix:///run/containerd/containerd.sock
 *   KUBELET_TS_TEST_IMAGE        an image there that has busybox's commands
 *   KUBELET_TS_TEST_CGROUP_ROOT  cgroup for the pods; the runtime's default when absent
 *   KUBELET_TS_TEST_NO_NETWORK   when set, pods use the host's network (no CNI there)
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { systemClock } from '../../src/concurrency/clock.ts';
import { CriClient } from '../../src/runtime/cri/cri-client.ts';
import { checkRuntime } from '../../src/runtime/cri/runtime-check.ts';
import { runtimeEventSource } from '../../src/runtime/events/runtime-event-source.ts';
import {
  LinuxPodSandboxConfig,
  LinuxSandboxSecurityContext,
  NamespaceMode,
  NamespaceOption,
} from '../../src/runtime/generated/cri.ts';
import { silentLogger } from '../../src/telemetry/logger.ts';
import { silentMetrics } from '../../src/telemetry/metrics.ts';
import { describeContainerRuntime } from './container-runtime.contract.ts';

const endpoint = process.env['KUBELET_TS_TEST_CONTAINERD'];
const image = process.env['KUBELET_TS_TEST_IMAGE'];
const hasNetwork = !process.env['KUBELET_TS_TEST_NO_NETWORK'];

/** Where the pods of the suite live, and on the host's network if there is no other. */
const linux = (): LinuxPodSandboxConfig => ({
  ...LinuxPodSandboxConfig.decode(new Uint8Array()),
  cgroupParent: process.env['KUBELET_TS_TEST_CGROUP_ROOT'] ?? '',
  securityContext: {
    ...LinuxSandboxSecurityContext.decode(new Uint8Array()),
    namespaceOptions: {
      ...NamespaceOption.decode(new Uint8Array()),
      network: hasNetwork ? NamespaceMode.POD : NamespaceMode.NODE,
    },
  },
});

describeContainerRuntime(
  'containerd',
  async () => {
    const clock = systemClock;
    const client = new CriClient({ endpoint: endpoint ?? '', clock, metrics: silentMetrics });
    const signal = AbortSignal.timeout(60_000);
    const facts = await checkRuntime({ runtime: client, clock, logger: silentLogger, signal });
    const logRoot = mkdtempSync(path.join(tmpdir(), 'kubelet-ts-logs-'));
    const { connection } = client;
    return {
      runtime: client,
      image: image ?? '',
      logRoot,
      hasNetwork,
      sandbox: { linux: linux() },
      events: runtimeEventSource({
        runtimeName: facts.name,
        connection,
        clock,
        logger: silentLogger,
        metrics: silentMetrics,
      }),
      async tearDown() {
        await client.close();
        rmSync(logRoot, { recursive: true, force: true });
      },
    };
  },
  { skip: endpoint && image ? false : 'KUBELET_TS_TEST_CONTAINERD and KUBELET_TS_TEST_IMAGE are not set' },
);
