/**
 * Who this machine is: the ids, kernel and system that the Node reports. Read once at start. A file that is
 * missing leaves its field empty; nothing here keeps an agent from starting.
 *
 * Reads without giving way: these files answer at once, and a node is registered only after them, while each
 * turn of the event loop is long when everything starts together.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface MachineIdentity {
  readonly machineId: string;
  readonly systemUuid: string;
  /** New after each boot. */
  readonly bootId: string;
  /** As `uname -r` tells it. */
  readonly kernelVersion: string;
  /** `Debian GNU/Linux 12 (bookworm)`; `Linux` where the system does not say. */
  readonly osImage: string;
  /** In Go's spelling: `amd64`, `arm64`. */
  readonly architecture: string;
}

export interface MachineIdentityOptions {
  /** `--machine-id-file`; the first readable one counts. */
  readonly machineIdFiles?: readonly string[];
  /** `--boot-id-file` */
  readonly bootIdFiles?: readonly string[];
  /** Where the file system of the machine begins; for tests. */
  readonly root?: string;
}

const machineIdFiles = ['/etc/machine-id', '/var/lib/dbus/machine-id'];
/** Firmware on PCs and servers, device tree on boards and in some virtual machines. */
const systemUuidFiles = [
  '/sys/class/dmi/id/product_uuid',
  '/proc/device-tree/system-id',
  '/proc/device-tree/vm,uuid',
];

export function readMachineIdentity(options: MachineIdentityOptions = {}): MachineIdentity {
  const { root = '/' } = options;
  const first = (files: readonly string[]) => firstReadable(files.map((file) => join(root, file)));
  const machineId = first(options.machineIdFiles ?? machineIdFiles);
  return {
    machineId,
    // A machine without firmware ids, such as a container, is told apart by its machine id.
    systemUuid: first(systemUuidFiles) || machineId,
    bootId: first(options.bootIdFiles ?? ['/proc/sys/kernel/random/boot_id']),
    kernelVersion: first(['/proc/sys/kernel/osrelease']),
    osImage: prettyName(first(['/etc/os-release', '/usr/lib/os-release'])) ?? 'Linux',
    architecture: goArchitecture(process.arch),
  };
}

/** `PRETTY_NAME` of an os-release file. */
export function prettyName(release: string): string | undefined {
  const [, value = ''] = /^PRETTY_NAME=(.*)$/m.exec(release) ?? [];
  const [, , quoted] = /^(["'])(.*)\1\s*$/.exec(value) ?? [];
  const name = (quoted ?? value).replace(/\\(["$`\\])/g, '$1').trim();
  return name === '' ? undefined : name;
}

const goNames: Readonly<Record<string, string>> = {
  x64: 'amd64',
  ia32: '386',
  loong64: 'loong64',
  ppc64: 'ppc64le',
};

/** Go's name of an architecture, which labels and nodeInfo use. */
export function goArchitecture(nodeName: string): string {
  return goNames[nodeName] ?? nodeName;
}

/** The trimmed text of the first file that can be read and is not empty. */
function firstReadable(files: readonly string[]): string {
  for (const file of files) {
    const text = textOf(file);
    // Device tree strings end in NUL.
    const trimmed = text.replace(/\0+$/, '').trim();
    if (trimmed !== '') return trimmed;
  }
  return '';
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
