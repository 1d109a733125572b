/**
 * The host's own addresses and what DNS calls this node, for `status.addresses`. Reading never fails: a
 * machine without a network has no addresses. A name that was found once is kept while DNS is away.
 */
import { lookup } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { type Clock, sleep } from '../concurrency/clock.ts';
import type { HostNetwork } from './node-addresses.ts';

/** The interface of the IPv4 default route with the lowest metric, from /proc/net/route text. */
export function defaultInterface4(routes: string): string | undefined {
  let best: { name: string; metric: number } | undefined;
  for (const line of routes.split('\n').slice(1)) {
    const [name, destination, , flags = '0', , , metric = '0', mask] = line.trim().split(/\s+/);
    const isUp = (Number.parseInt(flags, 16) & 1) === 1;
    if (!name || destination !== '00000000' || mask !== '00000000' || !isUp) continue;
    if (best === undefined || Number(metric) < best.metric) best = { name, metric: Number(metric) };
  }
  return best?.name;
}

/** The interface of the IPv6 default route with the lowest metric, from /proc/net/ipv6_route text. */
export function defaultInterface6(routes: string): string | undefined {
  let best: { name: string; metric: number } | undefined;
  for (const line of routes.split('\n')) {
    const fields = line.trim().split(/\s+/);
    const [destination = '', prefix, , , , metric = '', , , flags = '0', name] = fields;
    const isUp = (Number.parseInt(flags, 16) & 1) === 1;
    // The kernel's own "unreachable" default stands on lo.
    if (!/^0{32}$/.test(destination) || prefix !== '00' || !isUp || !name || name === 'lo') continue;
    const cost = Number.parseInt(metric, 16);
    if (best === undefined || cost < best.metric) best = { name, metric: cost };
  }
  return best?.name;
}

export async function readHostNetwork(): Promise<HostNetwork> {
  const text = (file: string) => readFile(file, 'utf8').catch(() => '');
  const [routes4, routes6] = await Promise.all([text('/proc/net/route'), text('/proc/net/ipv6_route')]);
  const interfaces = networkInterfaces();
  const of = (name: string | undefined, family: 4 | 6) =>
    (name === undefined ? [] : (interfaces[name] ?? []))
      .map(({ address }) => address)
      .filter((address) => isIP(address) === family);
  return {
    interfaceAddresses: Object.values(interfaces).flatMap((list = []) => list.map(({ address }) => address)),
    defaultAddresses: [...of(defaultInterface4(routes4), 4), ...of(defaultInterface6(routes6), 6)],
  };
}

/**
 * Asks DNS for the addresses of one name, again and again, one question at a time: the system's resolver takes
 * a thread for each, and name servers that are away take many seconds.
 */
export class NameLookup {
  readonly #name: string;
  readonly #clock: Clock;
  readonly #onLate: () => void;
  readonly #resolve: (name: string) => Promise<readonly string[]>;
  #last: readonly string[] | undefined;
  #asking: Promise<void> | undefined;
  #isLate = false;

  constructor(options: {
    name: string;
    clock: Clock;
    /** An answer has come that somebody did not wait for, and it is another one than before. */
    onLate?: () => void;
    /** Addresses of a name; the system's resolver by default. */
    resolve?: (name: string) => Promise<readonly string[]>;
  }) {
    this.#name = options.name;
    this.#clock = options.clock;
    this.#onLate = options.onLate ?? (() => {});
    this.#resolve = options.resolve ?? resolveBySystem;
  }

  /**
   * The newest answer, or the last good one when none comes within `patienceMs`; undefined while there has been
   * none at all. Never rejects.
   */
  async addresses(patienceMs: number): Promise<readonly string[] | undefined> {
    const deadline = new AbortController();
    this.#asking ??= this.#ask();
    // Both ways end quietly: aborting the wait is how it is given up.
    const late = sleep(this.#clock, patienceMs, deadline.signal).then(
      () => {
        this.#isLate = true;
      },
      () => {},
    );
    await Promise.race([this.#asking, late]);
    deadline.abort();
    return this.#last;
  }

  async #ask(): Promise<void> {
    const before = this.#last?.join();
    const found = await this.#resolve(this.#name).catch((): string[] => []);
    // That there is no such name is an answer as well, but takes nothing back.
    if (found.length > 0 || this.#last === undefined) this.#last = found;
    const isLate = this.#isLate;
    this.#isLate = false;
    this.#asking = undefined;
    if (isLate && this.#last.join() !== before) this.#onLate();
  }
}

async function resolveBySystem(name: string): Promise<string[]> {
  const found = await lookup(name, { all: true, order: 'verbatim' });
  return found.map(({ address }) => address);
}
