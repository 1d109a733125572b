/**
 * Containers that write down what happens to them, and the timeline that comes of it. Every container of a
 * pod appends to one file of the host, so the order of the lines is the order of events, and the file can be
 * read after the pod has gone.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import type { Container, LifecycleHandler } from '../../../src/kubernetes/types.ts';
import { surroundings } from '../../e2e/agent.ts';

/** What a container does between its start and its end; times are seconds. */
export interface Program {
  /** Between `starting` and `started`. */
  readonly startsFor?: number;
  /** Ends by itself after so long; without it, it runs until it is stopped. */
  readonly runsFor?: number;
  /** Ends by itself once this event has been recorded again since it started. */
  readonly runsUntilAgain?: string;
  /** Exit code of its own end. */
  readonly code?: number;
  /** What the stop signal does: ends after so long with this code, or nothing at all. */
  readonly onStop?: { readonly after?: number; readonly code?: number } | 'ignore';
}

const directory = '/record';
export const recordVolume = 'record';

/** A shell function that puts `<uptime> <container> <event>` into the record and the container's log. */
const say = (container: string) =>
  `say() { line="$(cut -d' ' -f1 /proc/uptime) ${container} $1"; echo "$line" >>${directory}/events; echo "$line"; }`;

/** A container that records `starting`, `started`, `stopping` and `ended`. */
export function recorded(name: string, program: Program = {}, more: Partial<Container> = {}): Container {
  const { startsFor = 0, runsFor, runsUntilAgain, code = 0, onStop = {} } = program;
  const stop =
    onStop === 'ignore'
      ? "trap '' TERM"
      : `trap 'say stopping; sleep ${onStop.after ?? 0}; say ended; exit ${onStop.code ?? 0}' TERM`;
  const end = `say ended; exit ${code}`;
  const count = `$(grep -c '${runsUntilAgain}' ${directory}/events)`;
  const run =
    runsUntilAgain !== undefined
      ? `while [ "${count}" -le "$seen" ]; do sleep 1 & wait $!; done; ${end}`
      : runsFor !== undefined
        ? `sleep ${runsFor} & wait $!; ${end}`
        : 'while :; do sleep 1 & wait $!; done';
  const look = runsUntilAgain === undefined ? ':' : `seen="${count}"`;
  const pause = startsFor > 0 ? `sleep ${startsFor} & wait $!` : ':';
  return {
    name,
    image: surroundings().image,
    command: ['sh', '-c', [say(name), stop, 'say starting', look, pause, 'say started', run].join('\n')],
    volumeMounts: [{ name: recordVolume, mountPath: directory }],
    ...more,
  };
}

/** The same as a restartable init container. */
export function sidecar(name: string, program: Program = {}, more: Partial<Container> = {}): Container {
  return recorded(name, program, { restartPolicy: 'Always', ...more });
}

/** A shell command for hooks and probes of a container; `say` is defined in it. */
export function recording(container: string, script: string): Required<Pick<LifecycleHandler, 'exec'>> {
  return { exec: { command: ['sh', '-c', `${say(container)} >/dev/null\n${script}`] } };
}

export interface Event {
  /** Seconds since the machine started. */
  readonly at: number;
  /** `<container> <event>`. */
  readonly what: string;
}

export class Timeline {
  readonly events: readonly Event[];

  constructor(events: readonly Event[]) {
    this.events = events;
  }

  /** What was recorded so far in the host's directory. */
  static read(directory: string): Timeline {
    const file = `${directory}/events`;
    const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
    const lines = text.split('\n').slice(0, -1);
    return new Timeline(
      lines.map((line) => {
        const [at = '', ...what] = line.split(' ');
        return { at: Number(at), what: what.join(' ') };
      }),
    );
  }

  times(what: string): number {
    return this.events.filter((event) => event.what === what).length;
  }

  has(what: string): boolean {
    return this.times(what) > 0;
  }

  /** When `what` happened first, or for the `nth` time, counted from 0; fails when it did not. */
  at(what: string, nth = 0): number {
    const event = this.events.filter((one) => one.what === what)[nth];
    assert.ok(event, `"${what}" did not happen ${nth + 1} times:\n${this.text}`);
    return event.at;
  }

  /** The first occurrences happened one after another. */
  inOrder(...whats: string[]): void {
    const positions = whats.map((what) => {
      const index = this.events.findIndex((event) => event.what === what);
      assert.notEqual(index, -1, `"${what}" did not happen:\n${this.text}`);
      return index;
    });
    const sorted = positions.toSorted((a, b) => a - b);
    assert.deepEqual(positions, sorted, `not in the order ${whats.join(', ')}:\n${this.text}`);
  }

  never(what: string): void {
    assert.ok(!this.has(what), `"${what}" happened:\n${this.text}`);
  }

  /** Both had begun before either ended. */
  together(one: string, other: string): void {
    const [begunOne, begunOther] = [this.at(`${one} starting`), this.at(`${other} starting`)];
    for (const [name, begun] of [
      [one, begunOther],
      [other, begunOne],
    ] as const) {
      const end = this.events.find(({ what }) => what === `${name} ended`);
      assert.ok(!end || end.at >= begun, `${one} and ${other} did not run together:\n${this.text}`);
    }
  }

  get text(): string {
    return this.events.map(({ at, what }) => `${at.toFixed(2)} ${what}`).join('\n');
  }
}
