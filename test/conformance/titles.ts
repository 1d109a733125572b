/**
 * Which titles of Kubernetes' own conformance suites this project's tests state, and what the others wait
 * for. The titles and their areas are facts of Kubernetes 1.36, kept in `fixtures/titles.json`; the rules
 * below put every title into exactly one class, which `titles.test.ts` proves.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** `covered`: a test of ours carries the title. Every other class names what it takes. */
export type TitleClass =
  | 'covered'
  /** Objects of the API server: config maps, secrets, mirror pods, leases, what others change in a pod. */
  | 'needs-api-server'
  /** A device plugin, its registration socket and the pod resources API. */
  | 'needs-device-plugin'
  /** The kubelet's HTTPS server: exec, logs, /configz, statistics, certificates. */
  | 'needs-https-server'
  /** CPU, memory and swap managers, and resizing in place. */
  | 'needs-resource-managers'
  /** A kernel with AppArmor. */
  | 'needs-apparmor'
  /** A container runtime with a feature that containerd 1.6 lacks. */
  | 'needs-newer-runtime';

export interface TitleRule {
  readonly area: string | RegExp;
  /** The titles of the area it is about; all when absent. */
  readonly titles?: RegExp;
  readonly class: TitleClass;
  /** Why there is no test yet. */
  readonly why?: string;
}

const covered = (area: string | RegExp, titles?: RegExp): TitleRule => ({
  area,
  ...(titles && { titles }),
  class: 'covered',
});
const needs = (
  what: Exclude<TitleClass, 'covered'>,
  area: string | RegExp,
  why: string,
  titles?: RegExp,
): TitleRule => ({ area, ...(titles && { titles }), class: what, why });

export const titleRules: readonly TitleRule[] = [
  covered(
    /^(?:container_lifecycle|container_probe|containers|deleted_pods|downwardapi|empty_dir|expansion|garbage_collector|host_path|image_gc|init_container|kubelet|kubelet_etc_hosts|lifecycle_hook|log_path|networking|oomkiller_linux|pod_admission|pod_hostnamefqdn|pod_hostnameoverride|pod_ips|pods_container_manager|pods_lifecycle_termination|pre_stop|privileged|proc_mount|security_context|static_pod|sysctl|terminate_pods|volume_manager)$/,
  ),

  covered('apparmor', /without AppArmor/),
  needs('needs-apparmor', 'apparmor', 'profiles are loaded into the kernel', /when running with AppArmor/),

  covered('mount_rro_linux', /does not support|invalid/),
  needs('needs-newer-runtime', 'mount_rro_linux', 'containerd 2.0 has it', /should accept recursive/),

  covered('pod_conditions', /after the pod is up/),
  needs('needs-api-server', 'pod_conditions', 'the volumes are config maps and secrets', /failing to mount/),

  covered('pods', /activeDeadlineSeconds|submitted and removed|back-off|QOS Class|readiness gates/),
  needs('needs-https-server', 'pods', 'commands and logs come over the server', /websockets/),
  needs(
    'needs-api-server',
    'pods',
    'it is about what the API server does with the object',
    /Pod Generation|should be updated|environment variables for services|collection|host IP|patch|run through/,
  ),

  covered('runtime', /termination message|exits should run|invalid registry|pull image \[|without secret/),
  covered('runtime_conformance'),
  needs('needs-api-server', 'runtime', 'pull secrets are objects of the API', /with secret/),
  needs('needs-newer-runtime', 'image_volume', 'containerd 2.1 mounts images'),

  needs(
    'needs-api-server',
    /^(?:configmap|configmap_volume|secrets|secrets_volume|projected_(?:combined|configmap|secret))$/,
    'static pods may not refer to objects of the API',
  ),
  covered(/^(?:downwardapi_volume|projected_downwardapi)$/, /provide|[mM]ode on/),
  needs(
    'needs-api-server',
    /^(?:downwardapi_volume|projected_downwardapi)$/,
    'a static pod does not change in place',
    /update/,
  ),
  needs('needs-api-server', /^mirror_pod/, 'the mirror of a static pod is such an object'),
  needs('needs-api-server', 'ephemeral_containers', 'they are added to a pod through the API'),
  needs('needs-api-server', 'pod_host_ips', 'a node that stands alone reports no addresses'),
  covered('runtimeclass', /PodOverhead handling/),
  needs('needs-api-server', 'runtimeclass', 'classes are objects of the API', /\] RuntimeClass /),
  needs(
    'needs-api-server',
    /^(?:lease|node_lease|node_lifecycle|podtemplates|taints)$/,
    'it is about objects of the API',
  ),
  needs(
    'needs-device-plugin',
    /^(?:device_plugin|device_plugin_failures|podresources)$/,
    'devices come later',
  ),
  needs(
    'needs-https-server',
    /^(?:container_metrics|endpoints|kubelet_tls|kubelet_server_tls|summary)$/,
    'the server comes later',
  ),
  needs('needs-resource-managers', /^(?:cpu_manager|pod_resize|swap)$/, 'the managers come later'),
];

export interface ConformanceTitle {
  readonly area: string;
  readonly title: string;
  /** Every rule that is about it: exactly one, or a test fails. */
  readonly rules: readonly TitleRule[];
}

/** Every title of every area, in the order of the fixture. */
export function conformanceTitles(): ConformanceTitle[] {
  const file = join(import.meta.dirname, 'fixtures', 'titles.json');
  const areas = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string[]>;
  return Object.entries(areas).flatMap(([area, titles]) =>
    titles.map((title) => ({ area, title, rules: rulesOf(area, title) })),
  );
}

function rulesOf(area: string, title: string): TitleRule[] {
  return titleRules.filter(
    (rule) =>
      (typeof rule.area === 'string' ? rule.area === area : rule.area.test(area)) &&
      (rule.titles === undefined || rule.titles.test(title)),
  );
}

/** The titles that source text of tests carries as plain strings, each as often as it is there. */
export function titlesIn(source: string): string[] {
  const strings = source.matchAll(/'(\[sig-(?:[^'\\\n]|\\.)*)'|"(\[sig-(?:[^"\\\n]|\\.)*)"/gu);
  return [...strings].map(([, single, double]) => (single ?? double ?? '').replaceAll(/\\(.)/gu, '$1'));
}
