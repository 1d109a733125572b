/** Where static pods come from, what pods get: logs, DNS, volumes, restart limits. */
import { bool, choice, duration, integer, map, object, optionalObject, text, texts } from '../field.ts';
import {
  atLeast,
  between,
  cidrs,
  dnsDomain,
  durationAtLeast,
  durationBetween,
  idsPerPod,
  ipAddresses,
  podLogsDirectory,
  positiveDuration,
  rotationSize,
  sysctlPatterns,
  webUrl,
} from '../value-checks.ts';

export const podsFields = {
  allowedUnsafeSysctls: texts('Unsafe sysctls pods may set', { default: [], check: sysctlPatterns }),
  clusterDNS: texts('DNS servers for ClusterFirst pods', { check: ipAddresses }),
  clusterDomain: text('Cluster DNS suffix added to pod search list', { default: '', check: dnsDomain }),
  configMapAndSecretChangeDetectionStrategy: choice(
    'string(enum)',
    ['Get', 'Cache', 'Watch'],
    'How ConfigMap and Secret changes are learned',
    { default: 'Watch' },
  ),
  containerLogMaxFiles: integer('int32', 'Log files kept for each container', {
    default: 5,
    pointer: true,
    check: atLeast(2),
  }),
  containerLogMaxSize: text('Log size that triggers rotation', { default: '10Mi', check: rotationSize }),
  containerLogMaxWorkers: integer('int32', 'Concurrent log rotation workers', {
    default: 1,
    pointer: true,
    check: atLeast(1),
  }),
  containerLogMonitorInterval: duration('Log rotation check period', {
    default: '10s',
    pointer: true,
    check: durationAtLeast('3s'),
  }),
  crashLoopBackOff: object(
    'Restart back-off settings',
    {
      maxContainerRestartPeriod: duration('Ceiling of the restart back-off', {
        pointer: true,
        gate: 'KubeletCrashLoopBackOffMax',
        check: durationBetween('1s', '300s'),
      }),
    },
    { gate: 'KubeletCrashLoopBackOffMax' },
  ),
  enableControllerAttachDetach: bool('Leave attach/detach to the controller', {
    default: true,
    pointer: true,
  }),
  fileCheckFrequency: duration('Poll period for the static pod path', {
    default: '20s',
    check: positiveDuration,
  }),
  hairpinMode: choice(
    'string',
    ['promiscuous-bridge', 'hairpin-veth', 'none'],
    'Legacy hairpin setting; no effect with CRI runtimes',
    { default: 'promiscuous-bridge' },
  ),
  httpCheckFrequency: duration('Poll period for the static pod URL', {
    default: '20s',
    check: positiveDuration,
  }),
  iptablesDropBit: integer('int32', 'Deprecated drop mark bit', {
    default: 15,
    pointer: true,
    check: between(0, 31),
  }),
  iptablesMasqueradeBit: integer('int32', 'Deprecated masquerade mark bit', {
    default: 14,
    pointer: true,
    check: between(0, 31),
  }),
  localStorageCapacityIsolation: bool('Account and limit ephemeral storage', {
    default: true,
    pointer: true,
  }),
  makeIPTablesUtilChains: bool('Create the KUBE-IPTABLES-HINT chain', { default: true, pointer: true }),
  podCIDR: text('Pod network range in standalone mode', { default: '', check: cidrs }),
  podLogsDir: text('Root directory for pod log files', { default: '/var/log/pods', check: podLogsDirectory }),
  resolvConf: text('Source file for pod DNS settings', { default: '/etc/resolv.conf', pointer: true }),
  // Differs from the kubelet: run-once was removed there, and true is refused.
  runOnce: bool('Run every static pod once, report how each ended, and exit', { default: false }),
  seccompDefault: bool('Use RuntimeDefault seccomp when none given', { default: false, pointer: true }),
  staticPodPath: text('Where static pod manifests are read from', { default: '' }),
  staticPodURL: text('HTTP source of static pod manifests', { default: '', check: webUrl }),
  staticPodURLHeader: map('list(string)', 'Extra headers sent to the static pod URL; masked in config log'),
  syncFrequency: duration('Longest gap between full resync of a pod', {
    default: '1m',
    check: positiveDuration,
  }),
  userNamespaces: optionalObject(
    'User namespace settings',
    {
      idsPerPod: integer('int64', "Size of a pod's id mapping", {
        pointer: true,
        gate: 'UserNamespacesSupport',
        check: idsPerPod,
      }),
    },
    { gate: 'UserNamespacesSupport' },
  ),
  volumePluginDir: text('FlexVolume driver directory', {
    default: '/usr/libexec/kubernetes/kubelet-plugins/volume/exec/',
  }),
  volumeStatsAggPeriod: duration('Volume usage calculation period', { default: '1m' }),
};
