/**
 * `/debug/pprof/`: what the program spends its time and memory on.
 *
 * Differs from the kubelet: profiles are those of V8 (`.cpuprofile`, `.heapprofile`, `.heapsnapshot`, to be
 * opened in the developer tools of a browser), not Go's; what only Go has (goroutines, threads, mutexes, symbols)
 * answers 404. One profile is taken at a time.
 */
import type { Clock } from '../concurrency/clock.ts';
import { sleep } from '../concurrency/clock.ts';
import type { Exchange, NodeRoute } from './route.ts';
import { sendText } from './router.ts';

const usualSeconds = 30;
const longestSeconds = 300;
/** Bytes between two samples of the heap. */
const heapSamplingInterval = 32_768;

const index = `<!DOCTYPE html>
<title>kubelet profiles</title>
<h1>Profiles</h1>
<ul>
<li><a href="profile?seconds=30">profile</a>: CPU, <code>seconds</code> long (.cpuprofile)
<li><a href="allocs?seconds=30">allocs</a>: what memory was asked for meanwhile (.heapprofile)
<li><a href="heap">heap</a>: everything that is in memory (.heapsnapshot)
<li><a href="cmdline">cmdline</a>: the command line
</ul>
`;

export function profileRoutes(options: { readonly enabled: boolean; readonly clock: Clock }): NodeRoute[] {
  const { enabled, clock } = options;
  const profiler = new Profiler(clock);
  return [
    {
      methods: ['GET', 'POST'],
      path: '/debug/pprof/',
      debugging: true,
      async handle(exchange) {
        const { response, rest } = exchange;
        if (!enabled) return sendText(response, 405, 'Debug endpoints are disabled.\n');
        switch (rest) {
          case '':
            response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
            return void response.end(index);
          case 'cmdline':
            return sendText(response, 200, [process.execPath, ...process.argv.slice(1)].join('\0'));
          case 'profile':
          case 'allocs':
            return await profiler.sample(rest, exchange);
          case 'heap':
            return await profiler.snapshot(exchange);
          default:
            return sendText(response, 404, `Unknown profile: ${rest}\n`);
        }
      },
    },
  ];
}

class Profiler {
  readonly #clock: Clock;
  #busy = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** For as long as is asked, or until the client leaves. */
  async sample(what: 'profile' | 'allocs', exchange: Exchange): Promise<void> {
    const { response, query, signal } = exchange;
    const seconds = Number(query.get('seconds') ?? usualSeconds);
    if (!(seconds > 0 && seconds <= longestSeconds)) {
      return sendText(response, 400, `seconds must be more than 0 and at most ${longestSeconds}\n`);
    }
    await this.#alone(exchange, async () => {
      const { Session } = process.getBuiltinModule('node:inspector/promises');
      const session = new Session();
      session.connect();
      try {
        const wait = () => sleep(this.#clock, seconds * 1000, signal);
        const take = what === 'profile' ? () => cpuProfile(session, wait) : () => heapProfile(session, wait);
        const text = JSON.stringify(await take());
        sendFile(response, what === 'profile' ? 'kubelet.cpuprofile' : 'kubelet.heapprofile');
        response.end(text);
      } finally {
        session.disconnect();
      }
    });
  }

  /** The program stands still while it is taken. */
  async snapshot(exchange: Exchange): Promise<void> {
    await this.#alone(exchange, async () => {
      const { pipeline } = process.getBuiltinModule('node:stream/promises');
      sendFile(exchange.response, 'kubelet.heapsnapshot');
      const snapshot = process.getBuiltinModule('node:v8').getHeapSnapshot();
      await pipeline(snapshot, exchange.response, { signal: exchange.signal });
    });
  }

  async #alone({ response, method }: Exchange, task: () => Promise<void>): Promise<void> {
    if (method === 'HEAD') return sendText(response, 200, '');
    if (this.#busy) return sendText(response, 500, 'another profile is being taken; try again later\n');
    this.#busy = true;
    try {
      await task();
    } finally {
      this.#busy = false;
    }
  }
}

type InspectorSession = import('node:inspector/promises').Session;

async function cpuProfile(session: InspectorSession, wait: () => Promise<void>): Promise<object> {
  await session.post('Profiler.enable');
  await session.post('Profiler.start');
  await wait();
  return (await session.post('Profiler.stop')).profile;
}

async function heapProfile(session: InspectorSession, wait: () => Promise<void>): Promise<object> {
  await session.post('HeapProfiler.startSampling', { samplingInterval: heapSamplingInterval });
  await wait();
  return (await session.post('HeapProfiler.stopSampling')).profile;
}

function sendFile(response: Exchange['response'], name: string): void {
  response.writeHead(200, {
    'content-type': 'application/octet-stream',
    'x-content-type-options': 'nosniff',
    'content-disposition': `attachment; filename="${name}"`,
  });
}
