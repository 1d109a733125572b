/**
 * Slices of systemd: cgroups that systemd itself makes, so that it does not undo what somebody else made in
 * its tree. Talks to systemd by `busctl`, which every machine with systemd has.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';

/** A property of a unit with its D-Bus type: `t` a 64 bit number, `b`, `s`, `as`. */
export type UnitProperty =
  | { readonly name: string; readonly type: 't'; readonly value: number | 'infinity' }
  | { readonly name: string; readonly type: 'b'; readonly value: boolean }
  | { readonly name: string; readonly type: 's'; readonly value: string }
  | { readonly name: string; readonly type: 'as'; readonly value: readonly string[] };

/** Runs `busctl` with these arguments; rejects with its error text. */
export type BusctlRunner = (args: readonly string[], signal?: AbortSignal) => Promise<void>;

/** systemd refused what was asked. */
export class SystemdError extends Error {
  override readonly name = 'SystemdError';
  constructor(action: string, unit: string, cause: unknown) {
    super(`systemd did not ${action} ${unit}: ${(cause as Error).message}`, { cause });
  }
}

const service = ['org.freedesktop.systemd1', '/org/freedesktop/systemd1', 'org.freedesktop.systemd1.Manager'];

/** The longest systemd is waited for, in milliseconds. */
const callDeadline = 30_000;

export class SystemdSlices {
  readonly #run: BusctlRunner;

  constructor(run: BusctlRunner = runBusctl) {
    this.#run = run;
  }

  /** Whether systemd is the init system of this machine and up. */
  static isRunning(): boolean {
    return existsSync('/run/systemd/system');
  }

  /** Starts a transient slice; when it is there already, its properties are set. */
  async ensure(unit: string, properties: readonly UnitProperty[], signal?: AbortSignal): Promise<void> {
    const parent = parentSlice(unit);
    const all: UnitProperty[] = [
      { name: 'Description', type: 's', value: `slice ${unit}` },
      ...(parent === undefined ? [] : [{ name: 'Wants', type: 'as', value: [parent] } as const]),
      { name: 'DefaultDependencies', type: 'b', value: false },
      { name: 'CPUAccounting', type: 'b', value: true },
      { name: 'MemoryAccounting', type: 'b', value: true },
      { name: 'TasksAccounting', type: 'b', value: true },
      ...properties,
    ];
    const start = [
      'call',
      ...service,
      'StartTransientUnit',
      'ssa(sv)a(sa(sv))',
      unit,
      'replace',
      ...encode(all),
      '0',
    ];
    try {
      await this.#run(start, signal);
    } catch (error) {
      if (!/already exists|already loaded|has a fragment file/i.test((error as Error).message)) {
        throw new SystemdError('start', unit, error);
      }
      await this.set(unit, properties, signal);
    }
  }

  /** Sets properties of a running slice until the next boot. */
  async set(unit: string, properties: readonly UnitProperty[], signal?: AbortSignal): Promise<void> {
    if (properties.length === 0) return;
    const call = ['call', ...service, 'SetUnitProperties', 'sba(sv)', unit, 'true', ...encode(properties)];
    await this.#run(call, signal).catch((error: unknown) => {
      throw new SystemdError('set properties of', unit, error);
    });
  }

  /** Stops a slice with everything in it; done when there is none. */
  async stop(unit: string, signal?: AbortSignal): Promise<void> {
    try {
      await this.#run(['call', ...service, 'StopUnit', 'ss', unit, 'replace'], signal);
    } catch (error) {
      if (!/not loaded|not found/i.test((error as Error).message))
        throw new SystemdError('stop', unit, error);
    }
  }
}

/** `a-b-c.slice` lies in `a-b.slice`; a name without a dash lies in the root. */
function parentSlice(unit: string): string | undefined {
  const dash = unit.lastIndexOf('-');
  return dash < 0 ? undefined : `${unit.slice(0, dash)}.slice`;
}

/** busctl's text form of `a(sv)`: a count, then name, type and value of each. */
function encode(properties: readonly UnitProperty[]): string[] {
  const encoded = [String(properties.length)];
  for (const { name, type, value } of properties) {
    encoded.push(name, type);
    if (type === 'as') encoded.push(String(value.length), ...value);
    else encoded.push(value === 'infinity' && type === 't' ? String(2n ** 64n - 1n) : String(value));
  }
  return encoded;
}

async function runBusctl(args: readonly string[], signal?: AbortSignal): Promise<void> {
  try {
    await promisify(execFile)('busctl', ['--system', '--quiet', ...args], { timeout: callDeadline, signal });
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    throw new Error(stderr?.trim() || message, { cause: error });
  }
}
