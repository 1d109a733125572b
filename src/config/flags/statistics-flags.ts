/** Settings of the statistics collector. They are accepted so that existing command lines work. */
import { flag, retiredFlag } from './flag.ts';

export const statisticsFlags = {
  'application-metrics-count-limit': retiredFlag('int', 100, 'Stored application metrics per container'),
  'boot-id-file': retiredFlag('string', '/proc/sys/kernel/random/boot_id', 'Files read for the boot id'),
  'container-hints': retiredFlag('string', '/etc/cadvisor/container_hints.json', 'Container hints file'),
  containerd: retiredFlag('string', '/run/containerd/containerd.sock', 'Containerd socket used by cadvisor'),
  'containerd-namespace': retiredFlag('string', 'k8s.io', 'Containerd namespace used by cadvisor'),
  'enable-load-reader': retiredFlag('bool', false, 'Read CPU load through netlink'),
  'event-storage-age-limit': retiredFlag('string', 'default=0', 'Age limit of stored cadvisor events'),
  'event-storage-event-limit': retiredFlag('string', 'default=0', 'Count limit of stored cadvisor events'),
  'global-housekeeping-interval': retiredFlag('duration', '1m0s', "Period of cadvisor's global housekeeping"),
  'housekeeping-interval': flag('duration', '10s', 'Container stats collection period of cadvisor'),
  'log-cadvisor-usage': retiredFlag('bool', false, "Log cadvisor's own usage"),
  'machine-id-file': retiredFlag(
    'string',
    '/etc/machine-id,/var/lib/dbus/machine-id',
    'Files read for the machine id',
  ),
  'max-housekeeping-interval': flag('duration', '15s', 'Upper bound of the dynamic stats period'),
  'storage-driver-buffer-duration': retiredFlag('duration', '1m0s', 'Buffer time before writing stats'),
  'storage-driver-db': retiredFlag('string', 'cadvisor', 'Stats database name'),
  'storage-driver-host': retiredFlag('string', 'localhost:8086', 'Stats database address'),
  'storage-driver-password': retiredFlag('string', 'root', 'Stats database password'),
  'storage-driver-secure': retiredFlag('bool', false, 'TLS to the stats database'),
  'storage-driver-table': retiredFlag('string', 'stats', 'Stats database table'),
  'storage-driver-user': retiredFlag('string', 'root', 'Stats database user'),
};
