/**
 * Health as Kubernetes asks for it: `/healthz` for all checks together, `/healthz/<name>` for one.
 * `?verbose` lists the checks, `?exclude=<name>` leaves some out. Healthy is 200 and `ok`, anything else 500.
 * The list names the checks that fail but not why, for it may be readable by anyone; the reason is in the
 * log and at the check's own path.
 */
import type { Clock } from '../concurrency/clock.ts';
import { errorText } from '../telemetry/error-text.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Exchange, NodeRoute } from './route.ts';
import { sendText } from './router.ts';

export interface HealthCheck {
  /** One path segment, for example `syncloop`. */
  readonly name: string;
  /** What is wrong, or undefined while all is well. A rejection counts as a failure too. */
  check(): string | undefined | Promise<string | undefined>;
}

/** Says that requests are answered at all. */
export const pingCheck: HealthCheck = { name: 'ping', check: () => undefined };

/** A check that takes longer fails, milliseconds: whoever asks wants to know before they give up. */
const checkTimeout = 5000;

export interface HealthRoutesInput {
  /** Asked in their order. */
  readonly checks: readonly HealthCheck[];
  /** Told of every run of a check. */
  readonly onOutcome?: (name: string, isHealthy: boolean) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

export function healthRoutes({ checks, onOutcome, clock, log }: HealthRoutesInput): NodeRoute[] {
  const run = async (check: HealthCheck) => {
    const problem = await outcomeOf(check, clock);
    onOutcome?.(check.name, problem === undefined);
    return problem;
  };
  const single: NodeRoute[] = checks.map((check) => ({
    methods: ['GET'],
    readOnly: true,
    path: `/healthz/${check.name}`,
    async handle({ response }) {
      const problem = await run(check);
      if (problem === undefined) sendText(response, 200, 'ok');
      else sendText(response, 500, `internal server error: ${problem}\n`);
    },
  }));
  const all: NodeRoute = {
    methods: ['GET'],
    readOnly: true,
    path: '/healthz',
    async handle(exchange) {
      const excluded = new Set(exchange.query.getAll('exclude'));
      const outcomes = await Promise.all(
        checks.map(async (check) => ({
          name: check.name,
          excluded: excluded.delete(check.name),
          problem: await run(check),
        })),
      );
      const failed = outcomes.filter((outcome) => !outcome.excluded && outcome.problem !== undefined);
      const problems = failed.map(({ name, problem }) => `${name}: ${problem}`);
      if (failed.length > 0) log.warn('Health check failed', { problems });
      sendOutcome(exchange, outcomes, { failed: failed.length > 0, unmatched: [...excluded] });
    },
  };
  return [all, ...single];
}

interface Outcome {
  readonly name: string;
  readonly excluded: boolean;
  readonly problem: string | undefined;
}

function sendOutcome(
  { response, query }: Exchange,
  outcomes: readonly Outcome[],
  { failed, unmatched }: { failed: boolean; unmatched: readonly string[] },
): void {
  const lines = outcomes.map(({ name, excluded, problem }) => {
    if (excluded) return `[+]${name} excluded: ok`;
    return problem === undefined ? `[+]${name} ok` : `[-]${name} failed: reason withheld`;
  });
  if (unmatched.length > 0) {
    const names = unmatched.map((name) => JSON.stringify(name)).join(', ');
    lines.push(`warn: some health checks cannot be excluded: no matches for ${names}`);
  }
  if (failed) sendText(response, 500, [...lines, 'healthz check failed', ''].join('\n'));
  else if (query.has('verbose')) sendText(response, 200, [...lines, 'healthz check passed', ''].join('\n'));
  else sendText(response, 200, 'ok');
}

/** What is wrong according to one check, within its time. */
function outcomeOf(check: HealthCheck, clock: Clock): Promise<string | undefined> {
  return new Promise((resolve) => {
    const cancel = clock.after(checkTimeout, () => resolve(`no result within ${checkTimeout / 1000} s`));
    void problemOf(check).then((problem) => {
      cancel();
      resolve(problem);
    });
  });
}

async function problemOf(check: HealthCheck): Promise<string | undefined> {
  try {
    return await check.check();
  } catch (error) {
    return errorText(error);
  }
}
