/** Rules on flags that have no configuration field. */
import { isIP } from 'node:net';
import { checkDns1123Subdomain, checkLabelValue, checkQualifiedName } from '../../kubernetes/names.ts';
import type { ConfigurationError } from '../configuration-error.ts';
import type { FlagValues } from '../flags/flags.ts';

/** Labels below kubernetes.io and k8s.io that a node may give itself. */
const OWN_LABELS = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'beta.kubernetes.io/instance-type',
  'node.kubernetes.io/instance-type',
  'node.kubernetes.io/windows-build',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
]);
const OWN_PREFIX = /^([^/]+\.)?(node|kubelet)\.kubernetes\.io\//;
const KUBERNETES_PREFIX = /^([^/]+\.)?(kubernetes|k8s)\.io\//;

/** What is wrong with flags that no configuration field stands for, beside the fields they bear on. */
export function checkFlagValues(
  flags: FlagValues,
  { runOnce }: { readonly runOnce: boolean } = { runOnce: false },
): ConfigurationError[] {
  const errors: ConfigurationError[] = [];
  const report = (flag: keyof FlagValues, message: string) => errors.push({ flag, message });

  for (const [key, value] of Object.entries(flags['node-labels'])) {
    const problem = checkQualifiedName(key)[0] ?? checkLabelValue(value)[0];
    if (problem) report('node-labels', `${key}=${value}: ${problem}`);
    else if (KUBERNETES_PREFIX.test(key) && !OWN_PREFIX.test(key) && !OWN_LABELS.has(key)) {
      report(
        'node-labels',
        `${key} is reserved; below kubernetes.io a node may set node.kubernetes.io/…, kubelet.kubernetes.io/… and the well-known labels`,
      );
    }
  }
  const addresses =
    flags['node-ip'] === '' ? [] : flags['node-ip'].split(',').map((address) => address.trim());
  const families = addresses.map((address) => isIP(address));
  if (families.includes(0))
    report('node-ip', 'needs an IP address, or an IPv4 and an IPv6 address with a comma');
  else if (families.length > 2 || (families.length === 2 && families[0] === families[1])) {
    report('node-ip', 'takes two addresses only when one is IPv4 and the other IPv6');
  }
  if (flags['hostname-override'] !== '') {
    const [problem] = checkDns1123Subdomain(flags['hostname-override'].trim().toLowerCase());
    if (problem) report('hostname-override', problem);
  }
  if (flags['root-dir'] === '') report('root-dir', 'must not be empty');
  if (!['', 'external'].includes(flags['cloud-provider']))
    report('cloud-provider', 'must be empty or external');
  if (flags['bootstrap-kubeconfig'] !== '' && flags.kubeconfig === '')
    report('bootstrap-kubeconfig', 'needs --kubeconfig: where the kubeconfig that comes of it is written');
  // Pods of a cluster come and go for ever: there is nothing a single run of them could end with.
  if (runOnce && flags.kubeconfig !== '') {
    report(
      'kubeconfig',
      'excludes --runonce (runOnce): it runs the static pods of a node that stands alone; leave --kubeconfig and --bootstrap-kubeconfig out',
    );
  }
  if (flags['exit-on-lock-contention'] && flags['lock-file'] === '')
    report('exit-on-lock-contention', 'needs --lock-file');
  const [providers, directory] = [
    flags['image-credential-provider-config'],
    flags['image-credential-provider-bin-dir'],
  ];
  if ((providers === '') !== (directory === '')) {
    report(
      providers === '' ? 'image-credential-provider-bin-dir' : 'image-credential-provider-config',
      'needs both --image-credential-provider-config and --image-credential-provider-bin-dir',
    );
  }
  return errors;
}
