/** How a node is a member of a cluster, and what its Node object says of it. */
import path from 'node:path';
import { parseDuration } from '../../kubernetes/duration.ts';
import type { KubeletConfiguration } from '../kubelet-configuration.ts';
import { absolute, given, type Loaded } from './loaded.ts';

/** How this node is a member of a cluster. */
export interface ClusterSettings {
  /** Path; where a bootstrap kubeconfig is given, the file is made. */
  readonly kubeconfig: string;
  /** Empty when not given. */
  readonly bootstrapKubeconfig: string;
  /** `--cert-dir` */
  readonly certificateDirectory: string;
  readonly rotateCertificates: boolean;
  /** `serverTLSBootstrap`: the cluster signs the certificate that the agent serves with. */
  readonly serverTlsBootstrap: boolean;
  /** `--restore-pods-offline` */
  readonly restorePodsOffline: boolean;
  /** Limits of requests a second; 0 means what Kubernetes' clients mean by it. */
  readonly api: { readonly qps: number; readonly burst: number };
  /** Limits of events a second; `qps` 0 for none. */
  readonly events: { readonly qps: number; readonly burst: number };
  readonly node: NodeSettings;
  readonly changeDetection: KubeletConfiguration['configMapAndSecretChangeDetectionStrategy'];
}

/** What the Node object says of this node. */
interface NodeSettings {
  /** False: somebody else creates the Node object. */
  readonly register: boolean;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: KubeletConfiguration['registerWithTaints'];
  /** Undefined: none. */
  readonly providerId: string | undefined;
  /** `--cloud-provider=external` */
  readonly externalCloud: boolean;
  /** `--node-ip` as given: empty, an address, or an IPv4 and an IPv6 address with a comma. */
  readonly ip: string;
  /** Files that may hold the machine's id and the id of its boot; the first one that can be read counts. */
  readonly machineIdFiles: readonly string[];
  readonly bootIdFiles: readonly string[];
  /** Port of the HTTPS server. */
  readonly port: number;
  readonly updateFrequencyMs: number;
  readonly reportFrequencyMs: number;
  readonly leaseDurationSeconds: number;
  /** Images in the status; -1 for all. */
  readonly maxImages: number;
}

/** Undefined: the node stands alone. */
export function clusterSettings(loaded: Loaded, cwd: string): ClusterSettings | undefined {
  const { configuration, flags } = loaded;
  const kubeconfig = absolute(flags.kubeconfig, cwd);
  if (kubeconfig === undefined) return undefined;
  return {
    kubeconfig,
    bootstrapKubeconfig: absolute(flags['bootstrap-kubeconfig'], cwd) ?? '',
    certificateDirectory: path.resolve(cwd, flags['cert-dir']),
    rotateCertificates: configuration.rotateCertificates,
    serverTlsBootstrap: configuration.serverTLSBootstrap,
    restorePodsOffline: flags['restore-pods-offline'],
    api: { qps: configuration.kubeAPIQPS, burst: configuration.kubeAPIBurst },
    events: { qps: configuration.eventRecordQPS, burst: configuration.eventBurst },
    node: nodeSettings(loaded),
    changeDetection: configuration.configMapAndSecretChangeDetectionStrategy,
  };
}

function nodeSettings({ configuration, flags }: Loaded): NodeSettings {
  return {
    register: configuration.registerNode,
    labels: flags['node-labels'],
    taints: configuration.registerWithTaints ?? [],
    providerId: given(configuration.providerID),
    externalCloud: flags['cloud-provider'] === 'external',
    ip: flags['node-ip'],
    machineIdFiles: fileList(flags['machine-id-file']),
    bootIdFiles: fileList(flags['boot-id-file']),
    port: configuration.port,
    updateFrequencyMs: parseDuration(configuration.nodeStatusUpdateFrequency),
    reportFrequencyMs: parseDuration(configuration.nodeStatusReportFrequency),
    leaseDurationSeconds: configuration.nodeLeaseDurationSeconds,
    maxImages: configuration.nodeStatusMaxImages,
  };
}

function fileList(text: string): string[] {
  return text.split(',').filter((file) => file !== '');
}
