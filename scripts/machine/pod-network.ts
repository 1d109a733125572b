/**
 * A bridge network of its own for each private containerd: name, bridge and subnet follow from the
 * directory, so that several can run side by side and each can find what is its own after a crash.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram, runCommand } from './command.ts';

export interface PodNetwork {
  /** CNI's name of the network; it stands in the comment of every iptables rule made for it. */
  name: string;
  bridge: string;
  /** IPv4 range in CIDR notation, room for about a thousand pods. */
  subnet: string;
  gateway: string;
}

/** An IPv4 range as numbers. */
export interface Range {
  first: number;
  last: number;
}

const subnetBits = 22;
const subnetSize = 2 ** (32 - subnetBits);
/** 10.128.0.0 up to 10.250.255.255: rarely used by home, office and cloud networks. */
const poolFirst = 0x0a80_0000;
const poolSubnets = ((251 - 128) * 2 ** 16) / subnetSize;

function dotted(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join('.');
}

/** The range of `10.128.4.0/22` or of a single address. */
export function parseRange(cidr: string): Range {
  const [address = '', bits = '32'] = cidr.split('/');
  const value = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
  const size = 2 ** (32 - Number(bits));
  const first = value - (value % size);
  return { first, last: first + size - 1 };
}

/** Chooses the network for a directory: always the same one unless a range in `taken` is in its way. */
export function choosePodNetwork(directory: string, taken: readonly Range[]): PodNetwork {
  const hash = createHash('sha256').update(directory).digest();
  const id = hash.toString('hex', 0, 4);
  const start = hash.readUInt32BE(4);
  for (let step = 0; step < poolSubnets; step++) {
    const first = poolFirst + ((start + step) % poolSubnets) * subnetSize;
    const last = first + subnetSize - 1;
    if (taken.some((range) => range.first <= last && first <= range.last)) continue;
    return {
      name: `kubelet-ts-${id}`,
      bridge: `kts-${id}`,
      subnet: `${dotted(first)}/${subnetBits}`,
      gateway: dotted(first + 1),
    };
  }
  throw new Error(
    'pod network: every subnet from 10.128.0.0 to 10.250.255.255 is routed on this machine already',
  );
}

/** Ranges that the machine routes, the default route aside, from the text of `/proc/net/route`. */
export function routedRanges(table: string): Range[] {
  return table
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [, destination, , , , , , mask] = line.split('\t');
      if (destination === undefined || mask === undefined) return [];
      const swap = (hex: string): number => Buffer.from(hex.trim(), 'hex').readUInt32LE(0);
      const first = swap(destination);
      const size = 2 ** 32 - swap(mask);
      return size === 2 ** 32 ? [] : [{ first, last: first + size - 1 }];
    });
}

/** The machine's routed ranges as of now. */
export function currentRanges(): Range[] {
  return routedRanges(readFileSync('/proc/net/route', 'utf8'));
}

export interface NetworkConfiguration {
  /** Where host-local remembers the addresses it gave out. */
  ipamDirectory: string;
  /** True when forwarded packets are dropped unless a rule lets them pass (Docker sets that policy). */
  forwardingDenied: boolean;
}

/** The CNI configuration list: bridge with masquerading, host ports, and a firewall only where needed. */
export function renderNetworkConfiguration(network: PodNetwork, options: NetworkConfiguration): string {
  const plugins: object[] = [
    {
      type: 'bridge',
      bridge: network.bridge,
      isGateway: true,
      ipMasq: true,
      hairpinMode: true,
      ipam: {
        type: 'host-local',
        dataDir: options.ipamDirectory,
        ranges: [[{ subnet: network.subnet, gateway: network.gateway }]],
        routes: [{ dst: '0.0.0.0/0' }],
      },
    },
    { type: 'portmap', capabilities: { portMappings: true }, snat: true },
  ];
  // Each plugin costs every pod some milliseconds, so this one is there only if packets need it.
  if (options.forwardingDenied) plugins.push({ type: 'firewall', backend: 'iptables' });
  return `${JSON.stringify({ cniVersion: '0.4.0', name: network.name, plugins }, null, 2)}\n`;
}

/** True when the policy of the chain FORWARD drops packets. */
export async function forwardingDenied(): Promise<boolean> {
  const rules = await runCommand('iptables', ['-w', '30', '-S', 'FORWARD']).catch(() => '');
  return /^-P FORWARD (DROP|REJECT)/m.test(rules);
}

const sharedChains = /^CNI-(HOSTPORT-(DNAT|SETMARK|MASQ)|FORWARD|ADMIN)$/;

/** The chains that the plugins make for one sandbox: for masquerading, and for its host ports. */
export function sandboxChains(network: PodNetwork, sandbox: string): string[] {
  const hash = createHash('sha512').update(`${network.name}${sandbox}`).digest('hex');
  return ['CNI-', 'CNI-DN-'].map((prefix) => `${prefix}${hash}`.slice(0, longestChain));
}

/** What CNI cuts names of chains off at. */
const longestChain = 28;

/**
 * From the text of `iptables-save`, the input for `iptables-restore --noflush` that removes every rule
 * and chain made for the network. Chains that CNI networks share go too when nobody else uses them; the
 * plugins make them anew when they need them. Empty when there is nothing to do.
 *
 * A plugin that was killed may leave a chain in which nothing says whose it is: those of `sandboxes` are told by
 * their names.
 */
export function ruleRemovalScript(
  saved: string,
  network: PodNetwork,
  sandboxes: readonly string[] = [],
): string {
  const range = parseRange(network.subnet);
  const inSubnet = (rule: string): boolean =>
    [...rule.matchAll(/ -[sd] ([\d./]+)/g)].some(([, cidr]) => {
      const { first, last } = parseRange(cidr ?? '');
      return first >= range.first && last <= range.last;
    });
  const named = new Set(sandboxes.flatMap((sandbox) => sandboxChains(network, sandbox)));
  const output: string[] = [];
  for (const section of saved.split(/^(?=\*)/m)) {
    const lines = section.split('\n');
    const table = lines[0] ?? '';
    if (!table.startsWith('*')) continue;
    const rules = lines.filter((line) => line.startsWith('-A CNI-') || / -j CNI-/.test(line));
    const chainOf = (rule: string): string => rule.split(' ')[1] ?? '';
    const targetOf = (rule: string): string => / -j (CNI-\S+)/.exec(rule)?.[1] ?? '';

    const own = rules.filter((rule) => rule.includes(`\\"${network.name}\\"`) || inSubnet(rule));
    const ownChains = new Set(own.map(targetOf).filter((chain) => chain !== '' && !sharedChains.test(chain)));
    const declared = lines.flatMap((line) => /^:(CNI-\S+)/.exec(line)?.[1] ?? []);
    for (const chain of declared) if (named.has(chain)) ownChains.add(chain);
    const kept = rules.filter((rule) => !own.includes(rule) && !ownChains.has(chainOf(rule)));
    const usedByOthers =
      kept.some((rule) => !sharedChains.test(chainOf(rule)) && !sharedChains.test(targetOf(rule))) ||
      kept.some(
        (rule) =>
          ['CNI-HOSTPORT-DNAT', 'CNI-FORWARD'].includes(chainOf(rule)) && targetOf(rule) !== 'CNI-ADMIN',
      );
    const unused = usedByOthers ? [] : declared.filter((chain) => sharedChains.test(chain));

    const removed = [...own, ...kept.filter((rule) => unused.includes(targetOf(rule)))].filter(
      (rule) => !ownChains.has(chainOf(rule)) && !unused.includes(chainOf(rule)),
    );
    const chains = [...ownChains, ...unused];
    if (removed.length + chains.length === 0) continue;
    output.push(
      table,
      ...removed.map((rule) => rule.replace(/^-A/, '-D')),
      ...chains.map((chain) => `-F ${chain}`),
      ...chains.map((chain) => `-X ${chain}`),
      'COMMIT',
    );
  }
  return output.length === 0 ? '' : `${output.join('\n')}\n`;
}

const cniResults = '/var/lib/cni/results';

/**
 * Removes bridge, interfaces, rules and remembered results of the network, with what is left of `sandboxes` that
 * were in it. Safe to repeat.
 */
export async function removePodNetwork(
  network: PodNetwork,
  sandboxes: readonly string[] = [],
): Promise<void> {
  const listed = await runCommand('ip', ['-o', 'link', 'show', 'master', network.bridge]).catch(() => '');
  const ports = [...listed.matchAll(/^\d+: ([^:@]+)/gm)].map(([, name]) => name ?? '');
  for (const name of [...ports, network.bridge]) {
    // A veth may vanish by itself with its namespace, just now.
    await runCommand('ip', ['link', 'delete', name]).catch(() => {});
  }
  if (findProgram('iptables-save') !== undefined) {
    await removeRules(network, [...sandboxes, ...cachedSandboxes(network)]);
  }
  removeCachedResults(network);
}

/** All or nothing, so it is tried again when another network changed a shared chain in between. */
async function removeRules(network: PodNetwork, sandboxes: readonly string[], attempts = 5): Promise<void> {
  const script = ruleRemovalScript(await runCommand('iptables-save', []), network, sandboxes);
  if (script === '') return;
  try {
    await runCommand('iptables-restore', ['--noflush', '-w', '30'], { input: script });
  } catch (error) {
    if (attempts <= 1) throw error;
    await removeRules(network, sandboxes, attempts - 1);
  }
}

/** Sandboxes that the plugins' library has not been told the end of. */
function cachedSandboxes(network: PodNetwork): string[] {
  if (!existsSync(cniResults)) return [];
  const own = new RegExp(`^${network.name}-([0-9a-f]+)-`);
  return readdirSync(cniResults).flatMap((name) => own.exec(name)?.[1] ?? []);
}

/** What the plugins' library remembers of each sandbox: one file for our network, one for loopback. */
function removeCachedResults(network: PodNetwork): void {
  try {
    for (const sandbox of cachedSandboxes(network)) {
      for (const name of readdirSync(cniResults)) {
        const isOurs = name.startsWith(`${network.name}-${sandbox}-`);
        if (isOurs || name === `cni-loopback-${sandbox}-lo`) rmSync(join(cniResults, name), { force: true });
      }
    }
    rmdirSync(cniResults);
    rmdirSync('/var/lib/cni');
  } catch {
    // There is none, or another network has results there.
  }
}
