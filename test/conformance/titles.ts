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
  /** What the API server or a controller does by itself: no node takes part, and a fixture proves nothing. */
  | 'of-the-control-plane'
  /** A device plugin, its registration socket and the pod resources API. */
  | 'needs-device-plugin'
  /** CPU and memory managers, and resizing in place. */
  | 'needs-resource-managers'
  /** Pressure and swap of single containers, which cgroup v2 alone measures and limits. */
  | 'needs-cgroup-v2'
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

  covered('pods', /^(?!.*logs from the container over websockets)/),
  needs(
    'of-the-control-plane',
    'pods',
    'the API server puts the plain log that the node answers with into a WebSocket',
    /logs from the container over websockets/,
  ),

  covered('runtime'),
  covered('runtime_conformance'),
  needs('needs-newer-runtime', 'image_volume', 'containerd 2.1 mounts images'),

  covered('configmap', /consumable|should update/),
  covered('secrets', /consumable/),
  needs(
    'of-the-control-plane',
    /^(?:configmap|secrets)$/,
    'it is about which objects the API server takes, and keeps',
    /empty (?:secret )?key|lifecycle|patch/,
  ),
  covered(
    /^(?:configmap_volume|secrets_volume|downwardapi_volume|projected_(?:combined|configmap|downwardapi|secret))$/,
  ),
  covered(
    /^(?:mirror_pod|mirror_pod_grace_period|pod_conditions|pod_host_ips|node_lease|ephemeral_containers)$/,
  ),
  covered('runtimeclass', /PodOverhead handling|schedule a Pod|reject a Pod/),
  needs(
    'of-the-control-plane',
    'runtimeclass',
    'it is about the objects alone, which the API server keeps',
    /API operations/,
  ),
  needs(
    'of-the-control-plane',
    /^(?:lease|node_lifecycle|podtemplates)$/,
    'it is about the objects alone, which the API server keeps',
  ),
  needs('of-the-control-plane', 'taints', 'a controller evicts pods by deleting their objects'),
  needs(
    'needs-device-plugin',
    /^(?:device_plugin|device_plugin_failures|podresources)$/,
    'devices come later',
  ),
  covered(/^(?:container_metrics|endpoints|kubelet_tls|kubelet_server_tls)$/),
  covered('summary', /report resource usage/),
  needs('needs-cgroup-v2', 'summary', 'this suite runs on the cgroups of the machine', /pressure/),
  needs('needs-resource-managers', /^(?:cpu_manager|pod_resize)$/, 'the managers come later'),
  needs('needs-cgroup-v2', 'swap', 'containers are told of swap on cgroup v2, where the node has some'),
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
