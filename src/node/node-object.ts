/**
 * The Node object as this agent registers it, and what it changes on one that exists already. Pure. The
 * spec of a node that exists is never touched: taints and provider id are given once, at registration, and
 * belong to the cluster from then on.
 */
import type { Node, Taint } from './node-types.ts';

/** What the operator decided about this node; the same for the agent's whole life. */
export interface NodeRegistrationSettings {
  readonly name: string;
  /** The host's name in lower case, or `--hostname-override`: label and address `Hostname`. */
  readonly hostname: string;
  /** `--node-labels`, after `checkNodeLabels`. */
  readonly labels: Readonly<Record<string, string>>;
  /** `registerWithTaints`. */
  readonly taints: readonly Taint[];
  /** `--register-schedulable`: false registers the node cordoned. */
  readonly schedulable: boolean;
  /** `--provider-id`; undefined when not given. */
  readonly providerId: string | undefined;
  /** `--cloud-provider=external`: the node is tainted until a cloud controller has looked at it. */
  readonly externalCloud: boolean;
  /** `enableControllerAttachDetach`: volumes are attached by the control plane. */
  readonly controllerAttachDetach: boolean;
  /** `--node-ip`, parsed: none, one, or one of each family. */
  readonly nodeIps: readonly string[];
  /** `amd64`, `arm64`, … in Go's spelling. */
  readonly architecture: string;
}

const attachDetachAnnotation = 'volumes.kubernetes.io/controller-managed-attach-detach';
const providedIpAnnotation = 'alpha.kubernetes.io/provided-node-ip';

/** Labels that follow this agent's settings on an existing node too; other `--node-labels` are given once. */
const reconciledLabels = [
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'node.kubernetes.io/instance-type',
  'beta.kubernetes.io/instance-type',
];

/** The labels of a node at registration: the standard ones, then `--node-labels`, which win. */
export function registrationLabels(
  settings: Pick<NodeRegistrationSettings, 'labels' | 'hostname' | 'architecture'>,
): Record<string, string> {
  return {
    'beta.kubernetes.io/arch': settings.architecture,
    'beta.kubernetes.io/os': 'linux',
    'kubernetes.io/arch': settings.architecture,
    'kubernetes.io/hostname': settings.hostname,
    'kubernetes.io/os': 'linux',
    ...settings.labels,
  };
}

/** The node to create, without status. */
export function newNode(settings: NodeRegistrationSettings): Node {
  const taints = registrationTaints(settings);
  const spec = {
    ...(settings.providerId === undefined ? {} : { providerID: settings.providerId }),
    ...(settings.schedulable ? {} : { unschedulable: true }),
    ...(taints.length === 0 ? {} : { taints }),
  };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: settings.name,
      labels: registrationLabels(settings),
      annotations: annotationsOf({}, settings),
    },
    spec,
  };
}

/** The existing node with the labels and annotations that this agent answers for; all else as it is. */
export function reconcileMetadata(existing: Node, settings: NodeRegistrationSettings): Node {
  const wanted = registrationLabels(settings);
  const labels = { ...existing.metadata.labels };
  for (const label of reconciledLabels) {
    const value = wanted[label];
    if (value === undefined) continue;
    // An empty value asks for the label to be taken off, as `--node-labels=zone=` does.
    if (value === '') delete labels[label];
    else labels[label] = value;
  }
  const annotations = annotationsOf(existing.metadata.annotations ?? {}, settings);
  return { ...existing, metadata: { ...existing.metadata, labels, annotations } };
}

/** `registerWithTaints`, and the taints that close the gap until controllers set their own. */
function registrationTaints(settings: NodeRegistrationSettings): Taint[] {
  const taints = [...settings.taints];
  const add = (taint: Taint) => {
    if (!taints.some(({ key, effect }) => key === taint.key && effect === taint.effect)) taints.push(taint);
  };
  if (!settings.schedulable) add({ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' });
  if (settings.externalCloud) {
    add({ key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' });
  }
  return taints;
}

function annotationsOf(
  existing: Readonly<Record<string, string>>,
  settings: NodeRegistrationSettings,
): Record<string, string> {
  const annotations = { ...existing };
  if (settings.controllerAttachDetach) annotations[attachDetachAnnotation] = 'true';
  else delete annotations[attachDetachAnnotation];
  const givenIps = settings.nodeIps.filter((ip) => !['0.0.0.0', '::'].includes(ip));
  if (settings.externalCloud && givenIps.length > 0) annotations[providedIpAnnotation] = givenIps.join(',');
  else delete annotations[providedIpAnnotation];
  return annotations;
}
