/** What this node is called, where it keeps its state, which cluster it joins. */
import { configFlag, flag } from './flag.ts';

export const nodeFlags = {
  'bootstrap-kubeconfig': flag('string', '', 'Kubeconfig used to request the first client certificate'),
  'cert-dir': flag('string', '/var/lib/kubelet/pki', 'Directory of kubelet certificates'),
  'cloud-provider': flag('string', '', 'Empty or external'),
  config: flag('string', '', 'Path of the KubeletConfiguration file; flags override it'),
  'config-dir': flag('string', '', 'Directory tree of .conf drop-ins merged over --config'),
  'event-burst': configFlag('int32', 100, 'eventBurst', 'Burst of event creations'),
  'event-qps': configFlag('int32', 50, 'eventRecordQPS', 'Event creations per second'),
  'exit-on-lock-contention': flag(
    'bool',
    false,
    'Exit when another process opens the lock file; needs --lock-file',
  ),
  'feature-gates': configFlag('mapStringBool', {}, 'featureGates', 'Feature gate overrides'),
  help: flag('bool', false, 'Print usage', { shorthand: 'h' }),
  'hostname-override': flag('string', '', 'Node name instead of the host name'),
  'image-credential-provider-bin-dir': flag('string', '', 'Directory of credential provider executables'),
  'image-credential-provider-config': flag(
    'string',
    '',
    'Credential provider config file or directory (.json .yaml .yml, sorted, not recursive)',
  ),
  'kube-api-burst': configFlag('int32', 100, 'kubeAPIBurst', 'API client burst'),
  'kube-api-content-type': configFlag(
    'string',
    'application/vnd.kubernetes.protobuf',
    'contentType',
    'Encoding of API server requests; they are in JSON whatever it says',
  ),
  'kube-api-qps': configFlag('int32', 50, 'kubeAPIQPS', 'API client queries per second'),
  kubeconfig: flag('string', '', 'API server kubeconfig; empty means standalone mode'),
  'lock-file': flag('string', '', 'Lock file path'),
  'node-ip': flag('string', '', 'Node IP or IPv4,IPv6 pair; :: prefers IPv6'),
  'node-labels': flag(
    'mapStringString',
    {},
    'Labels for node registration; kubernetes.io/k8s.io keys only from the allowed set',
  ),
  'node-status-max-images': configFlag('int32', 50, 'nodeStatusMaxImages', 'Images listed in node status'),
  'node-status-update-frequency': configFlag(
    'duration',
    '10s',
    'nodeStatusUpdateFrequency',
    'How often node status is computed',
  ),
  'provider-id': flag('string', '', 'Cloud instance id written to node spec', { field: 'providerID' }),
  'register-node': configFlag('bool', true, 'registerNode', 'Create the Node object'),
  'register-with-taints': configFlag(
    '[]v1.Taint',
    [],
    'registerWithTaints',
    'Taints put on the node when registering',
  ),
  'restore-pods-offline': flag(
    'bool',
    false,
    'Not of Kubernetes: after a reboot run the pods again that were wanted here last, before the API server has ' +
      'spoken; keeps what they need of it below --root-dir, secrets in clear',
  ),
  'root-dir': flag('string', '/var/lib/kubelet', 'Kubelet state directory'),
  'rotate-certificates': configFlag(
    'bool',
    false,
    'rotateCertificates',
    'Renew the client certificate through CSRs',
  ),
  version: flag('version', 'false', 'Print version and quit; vX.Y.Z overrides the reported version'),
  'windows-priorityclass': flag(
    'string',
    'NORMAL_PRIORITY_CLASS',
    'Windows process priority (Windows build only)',
  ),
  'windows-service': flag('bool', false, 'Run as a Windows service (Windows build only)'),
};
