/** Sources of static pods and what pods get. */
import { configFlag, flag, retiredFlag } from './flag.ts';

export const podsFlags = {
  'allowed-unsafe-sysctls': configFlag('strings', [], 'allowedUnsafeSysctls', 'Unsafe sysctls pods may set'),
  'cluster-dns': configFlag('strings', [], 'clusterDNS', 'DNS servers for ClusterFirst pods'),
  'cluster-domain': configFlag('string', '', 'clusterDomain', 'Cluster DNS suffix added to pod search list'),
  'container-log-max-files': configFlag(
    'int32',
    5,
    'containerLogMaxFiles',
    'Log files kept for each container',
  ),
  'container-log-max-size': configFlag(
    'string',
    '10Mi',
    'containerLogMaxSize',
    'Log size that triggers rotation',
  ),
  'enable-controller-attach-detach': configFlag(
    'bool',
    true,
    'enableControllerAttachDetach',
    'Leave attach/detach to the controller',
  ),
  'experimental-mounter-path': retiredFlag('string', '', 'Alternative mount binary'),
  'file-check-frequency': configFlag(
    'duration',
    '20s',
    'fileCheckFrequency',
    'Poll period for the static pod path',
  ),
  'hairpin-mode': configFlag(
    'string',
    'promiscuous-bridge',
    'hairpinMode',
    'Legacy hairpin setting; no effect with CRI runtimes',
  ),
  'http-check-frequency': configFlag(
    'duration',
    '20s',
    'httpCheckFrequency',
    'Poll period for the static pod URL',
  ),
  'local-storage-capacity-isolation': configFlag(
    'bool',
    true,
    'localStorageCapacityIsolation',
    'Account and limit ephemeral storage',
  ),
  'make-iptables-util-chains': configFlag(
    'bool',
    true,
    'makeIPTablesUtilChains',
    'Create the KUBE-IPTABLES-HINT chain',
  ),
  'manifest-url': configFlag('string', '', 'staticPodURL', 'HTTP source of static pod manifests'),
  'manifest-url-header': configFlag(
    'colonSeparatedMultimapStringString',
    {},
    'staticPodURLHeader',
    'Extra headers sent to the static pod URL; masked in config log',
  ),
  'pod-cidr': configFlag('string', '', 'podCIDR', 'Pod network range in standalone mode'),
  'pod-manifest-path': configFlag('string', '', 'staticPodPath', 'Where static pod manifests are read from'),
  'resolv-conf': configFlag('string', '/etc/resolv.conf', 'resolvConf', 'Source file for pod DNS settings'),
  runonce: configFlag('bool', false, 'runOnce', 'Run every static pod once, report how each ended, and exit'),
  'seccomp-default': flag('bool', false, 'Use RuntimeDefault seccomp when none given', {
    field: 'seccompDefault',
  }),
  'sync-frequency': configFlag('duration', '1m', 'syncFrequency', 'Longest gap between full resync of a pod'),
  'volume-plugin-dir': configFlag(
    'string',
    '/usr/libexec/kubernetes/kubelet-plugins/volume/exec/',
    'volumePluginDir',
    'FlexVolume driver directory',
  ),
  'volume-stats-agg-period': configFlag(
    'duration',
    '1m',
    'volumeStatsAggPeriod',
    'Volume usage calculation period',
  ),
};
