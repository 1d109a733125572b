/**
 * Installs what is missing of the distribution's packages, and nothing else: a program that is there
 * already, from whatever package, is used as it is. Nothing is removed, and no service is started by it.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CommandFailedError, findProgram, runCommand } from './command.ts';

/** Where distributions and people put the CNI plugins. */
const cniDirectories = ['/opt/cni/bin', '/usr/lib/cni', '/usr/libexec/cni'];
const cniPlugins = ['bridge', 'host-local', 'loopback', 'portmap', 'firewall'];

/** One requirement: the package to install when `present` says no. */
export interface Requirement {
  package: string;
  present(): boolean;
}

/** The requirement that some programs are on PATH. */
export function programs(packageName: string, ...names: string[]): Requirement {
  return { package: packageName, present: () => names.every((name) => findProgram(name) !== undefined) };
}

/** The first directory that holds every CNI plugin that a pod network needs. */
export function findCniPlugins(first: readonly string[] = []): string | undefined {
  return [...first, ...cniDirectories].find((directory) =>
    cniPlugins.every((plugin) => existsSync(join(directory, plugin))),
  );
}

/** What a private containerd with a bridge network needs. */
export const containerdRequirements: readonly Requirement[] = [
  programs('containerd', 'containerd', 'containerd-shim-runc-v2', 'ctr'),
  programs('runc', 'runc'),
  { package: 'containernetworking-plugins', present: () => findCniPlugins() !== undefined },
  programs('iptables', 'iptables', 'iptables-save', 'iptables-restore'),
  programs('iproute2', 'ip'),
];

const environment: NodeJS.ProcessEnv = {
  ...process.env,
  DEBIAN_FRONTEND: 'noninteractive',
  // Ubuntu restarts services after an installation unless told not to.
  NEEDRESTART_SUSPEND: '1',
};

const lockWait = ['-o', 'DPkg::Lock::Timeout=300'];
const longest = 15 * 60_000;

/** `apt-get update`; waits up to five minutes for another one to end. */
export async function updatePackageLists(): Promise<void> {
  const deadline = Date.now() + 300_000;
  for (;;) {
    try {
      await runCommand('apt-get', ['-q', ...lockWait, 'update'], { env: environment, timeout: longest });
      return;
    } catch (error) {
      const locked = error instanceof CommandFailedError && /could not get lock/i.test(error.output);
      if (!locked || Date.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
  }
}

const policyMarker = '# kubelet-ts: no service is started while packages are being installed';

/**
 * Runs `action` while Debian's hook for it forbids to start services. A hook that is there already stays;
 * one that an interrupted run left behind is replaced and removed.
 */
export async function withoutServiceStarts<T>(
  action: () => Promise<T>,
  policy = '/usr/sbin/policy-rc.d',
): Promise<T> {
  const foreign = existsSync(policy) && !readFileSync(policy, 'utf8').includes(policyMarker);
  if (foreign) return await action();
  writeFileSync(policy, `#!/bin/sh\n${policyMarker}\nexit 101\n`, { mode: 0o755 });
  try {
    return await action();
  } finally {
    rmSync(policy, { force: true });
  }
}

/**
 * Installs the packages of the requirements that are not met; returns their names. `note` is told before
 * anything is changed. Throws when there is no apt, or when apt could do it only by removing something.
 */
export async function installPackages(
  requirements: readonly Requirement[],
  note: (text: string) => void,
): Promise<string[]> {
  const missing = requirements
    .filter((requirement) => !requirement.present())
    .map(({ package: name }) => name);
  if (missing.length === 0) return [];
  if (findProgram('apt-get') === undefined) {
    throw new Error(
      `missing: ${missing.join(', ')}; this is no Debian or Ubuntu (no apt-get): install them by hand`,
    );
  }
  note(`installing ${missing.join(', ')}`);
  const install = async (): Promise<void> => {
    const options = ['-q', '-y', '--no-install-recommends', '--no-remove', ...lockWait];
    const keepFiles = ['-o', 'Dpkg::Options::=--force-confdef', '-o', 'Dpkg::Options::=--force-confold'];
    await runCommand('apt-get', [...options, ...keepFiles, 'install', ...missing], {
      env: environment,
      timeout: longest,
    });
  };
  await withoutServiceStarts(async () => {
    // A fresh machine has no package lists, an old one has lists of packages that are gone.
    await install().catch(async () => {
      await updatePackageLists();
      await install();
    });
  });
  await keepOwnServicesOff(missing, note);
  const still = requirements.filter((requirement) => !requirement.present()).map(({ package: name }) => name);
  if (still.length > 0) throw new Error(`still missing after the installation: ${still.join(', ')}`);
  return missing;
}

/** A containerd service that came only because of us must not run after the next boot either. */
async function keepOwnServicesOff(installed: readonly string[], note: (text: string) => void): Promise<void> {
  if (!installed.includes('containerd') || !existsSync('/run/systemd/system')) return;
  await runCommand('systemctl', ['disable', '--now', 'containerd.service']);
  note('the service containerd.service that came along is switched off; only a private containerd is used');
}
