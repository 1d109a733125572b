/**
 * Measures the agent on this machine against bare CRI calls in the same run and prints one table.
 *
 *     npm run bench                      everything, about 6 minutes
 *     npm run bench -- --quick           fewer repetitions, no 100 pods, under 2 minutes
 *     npm run bench -- --only one,start  parts: one, thirty, hundred, start, restart, idle, containers, cluster
 *     npm run bench -- --profile DIR     a CPU profile of each agent process into DIR
 *
 * Needs root, containerd, runc and the CNI plugins (as `./run` installs them) and leaves nothing behind.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type Part, parts, playParts, type Repetitions } from './parts.ts';
import { Results } from './results.ts';
import { withStage } from './stage.ts';
import { renderTable } from './table.ts';

const checkout = join(import.meta.dirname, '..');

const full: Repetitions = {
  one: 16,
  thirty: 2,
  start: 10,
  restart: 3,
  idleSeconds: 60,
  cluster: 20,
  scrapes: 12,
};
const quick: Repetitions = {
  one: 6,
  thirty: 1,
  start: 4,
  restart: 1,
  idleSeconds: 8,
  cluster: 6,
  scrapes: 4,
};

function readOptions() {
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      quick: { type: 'boolean', default: false },
      profile: { type: 'string' },
      program: { type: 'string' },
    },
  });
  const usual = values.quick ? parts.filter((part) => part !== 'hundred') : parts;
  const asked = values.only?.split(',').map((name): Part => {
    const part = parts.find((candidate) => candidate === name);
    if (part === undefined) throw new Error(`--only ${name}: there are ${parts.join(', ')}`);
    return part;
  });
  return { ...values, chosen: new Set(asked ?? usual) };
}

async function main(): Promise<number> {
  const { chosen, profile, program, ...values } = readOptions();
  if (process.getuid?.() !== 0) throw new Error('pods, mounts and cgroups need root: sudo npm run bench');
  if (program === undefined) build();
  const agentEnvironment = profile === undefined ? {} : profiling(profile);
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      if (!stop.signal.aborted) console.error('stopping');
      stop.abort(new Error(`ended by ${name}`));
    });
  }

  const results = new Results();
  const before = loadavg()[0] ?? 0;
  let subject = '';
  try {
    await withStage(
      { program: resolve(program ?? join(checkout, 'dist/kubelet')), agentEnvironment, stop: stop.signal },
      async (stage) => {
        subject = stage.containerd.version;
        const started = Date.now();
        const say = (text: string): void =>
          console.error(`${((Date.now() - started) / 1000).toFixed(0).padStart(4)} s  ${text}`);
        await playParts({ stage, results, chosen, times: values.quick ? quick : full, say });
      },
    );
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  }
  console.log(`\n${renderTable(results)}\n`);
  console.log(
    `${availableParallelism()} cores, ${subject}, node ${process.version}; load before ${before.toFixed(1)}, ` +
      `after ${(loadavg()[0] ?? 0).toFixed(1)}. Medians, in brackets the 90th percentile.`,
  );
  return stop.signal.aborted ? 130 : 0;
}

function build(): void {
  const { status } = spawnSync(process.execPath, ['--no-warnings', join(checkout, 'scripts/build.ts')], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status !== 0) throw new Error('the executable cannot be built');
}

function profiling(directory: string): NodeJS.ProcessEnv {
  mkdirSync(directory, { recursive: true });
  return { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${resolve(directory)}` };
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
