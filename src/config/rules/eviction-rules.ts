/** Eviction thresholds: known signals, amounts that make sense, a grace period for each soft one. */
import { parseDuration } from '../../kubernetes/duration.ts';
import { tryParseQuantity } from '../../kubernetes/quantity.ts';
import type { Rule } from './rule.ts';

const EVICTION_SIGNALS = [
  'memory.available',
  'nodefs.available',
  'nodefs.inodesFree',
  'imagefs.available',
  'imagefs.inodesFree',
  'containerfs.available',
  'containerfs.inodesFree',
  'allocatableMemory.available',
  'pid.available',
] as const;

const isSignal = (name: string) => (EVICTION_SIGNALS as readonly string[]).includes(name);
const unknownSignal = `unknown eviction signal; known are ${EVICTION_SIGNALS.join(', ')}`;

/** What is wrong with a threshold (`10%`, `100Mi`), or undefined. */
function thresholdProblem(text: string): string | undefined {
  if (text.endsWith('%')) {
    const percent = Number(text.slice(0, -1));
    return /^[0-9.]+%$/.test(text) && percent <= 100
      ? undefined
      : `must be 0% to 100%, not ${JSON.stringify(text)}`;
  }
  const quantity = tryParseQuantity(text);
  if (!quantity) return `must be a quantity or a percentage, not ${JSON.stringify(text)}`;
  return quantity.nano < 0n ? `must not be negative, but is ${text}` : undefined;
}

const thresholds: Rule = (configuration, report) => {
  for (const field of ['evictionHard', 'evictionSoft', 'evictionMinimumReclaim'] as const) {
    for (const [signal, amount] of Object.entries(configuration[field] ?? {})) {
      const problem = isSignal(signal) ? thresholdProblem(amount) : unknownSignal;
      if (problem) report([field, signal], problem);
    }
  }
};

const softGrace: Rule = ({ evictionSoft = {}, evictionSoftGracePeriod = {} }, report) => {
  for (const signal of Object.keys(evictionSoft)) {
    if (!Object.hasOwn(evictionSoftGracePeriod, signal)) {
      report(['evictionSoft', signal], `needs a grace period: set evictionSoftGracePeriod for ${signal}`);
    }
  }
  for (const [signal, grace] of Object.entries(evictionSoftGracePeriod)) {
    const at = ['evictionSoftGracePeriod', signal];
    if (!isSignal(signal)) report(at, unknownSignal);
    let milliseconds: number | undefined;
    try {
      milliseconds = parseDuration(grace);
    } catch {
      report(at, `must be a duration such as "1m30s", not ${JSON.stringify(grace)}`);
    }
    if (milliseconds !== undefined && milliseconds < 0) report(at, 'must not be negative');
  }
};

/** Rules of eviction settings. */
export const evictionRules: readonly Rule[] = [thresholds, softGrace];
