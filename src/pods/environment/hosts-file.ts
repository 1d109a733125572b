/**
 * The hosts file of a pod. The bytes are the kubelet's, because tools and tests look for them.
 */
import { constants } from 'node:fs';
import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { PodSpec } from '../../kubernetes/types.ts';

type HostAliases = NonNullable<PodSpec['hostAliases']>;

const loopback = [
  ['127.0.0.1', 'localhost'],
  ['::1', 'localhost ip6-localhost ip6-loopback'],
  ['fe00::0', 'ip6-localnet'],
  ['fe00::0', 'ip6-mcastprefix'],
  ['fe00::1', 'ip6-allnodes'],
  ['fe00::2', 'ip6-allrouters'],
] as const;

/** The hosts file of a pod with a network of its own: loopback names, its own names, its aliases. */
export function podHostsFile(pod: {
  readonly ips: readonly string[];
  readonly hostname: string;
  /** What follows the host name in its qualified name; absent for pods without a subdomain. */
  readonly domain?: string | undefined;
  readonly hostAliases?: HostAliases | undefined;
}): string {
  const names = pod.domain ? `${pod.hostname}.${pod.domain}\t${pod.hostname}` : pod.hostname;
  const lines = [
    '# Kubernetes-managed hosts file.',
    ...loopback.map(([ip, name]) => `${ip}\t${name}`),
    ...pod.ips.map((ip) => `${ip}\t${names}`),
  ];
  return `${lines.join('\n')}\n${aliasLines(pod.hostAliases)}`;
}

/** The hosts file of a pod on the node's network: the node's own, and the pod's aliases. */
export function hostNetworkHostsFile(nodeHostsFile: string, hostAliases?: HostAliases): string {
  return `# Kubernetes-managed hosts file (host network).\n${nodeHostsFile}${aliasLines(hostAliases)}`;
}

function aliasLines(hostAliases: HostAliases = []): string {
  if (hostAliases.length === 0) return '';
  const lines = hostAliases.map(({ ip, hostnames = [] }) => [ip, ...hostnames].join('\t'));
  return `\n# Entries added by HostAliases.\n${lines.join('\n')}\n`;
}

/**
 * Brings the file at `path` to `content`, mode 0644. It is written in place, not replaced: containers that
 * run have this very file mounted. A file that is right already is not touched.
 */
export async function writeHostsFile(path: string, content: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o750 });
  const { O_CREAT, O_RDWR, O_NOFOLLOW } = constants;
  const file = await open(path, O_CREAT | O_RDWR | O_NOFOLLOW, 0o644);
  try {
    if ((await file.readFile('utf8')) !== content) {
      // Written over, then cut: at no moment is the file empty for a container that looks.
      const bytes = Buffer.from(content);
      await file.write(bytes, 0, bytes.length, 0);
      await file.truncate(bytes.length);
    }
    await file.chmod(0o644);
  } finally {
    await file.close();
  }
}
