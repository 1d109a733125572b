/**
 * Kubernetes quantities (`500m`, `1Gi`, `2e3`), exact to a billionth. Every value is kept as a whole number
 * of nanos, so comparing and adding never round; only reading one out as a number does. The canonical text
 * is the one the API server prints.
 */

/** How a quantity was written, and therefore how it is printed. */
export type QuantityFormat = 'DecimalSI' | 'BinarySI' | 'DecimalExponent';

export interface Quantity {
  /** The amount times 10⁹. */
  readonly nano: bigint;
  readonly format: QuantityFormat;
}

/** The text is no quantity; `message` is the API server's, ready to follow a field path. */
export class QuantityError extends Error {
  override readonly name = 'QuantityError';
  readonly text: string;

  constructor(text: string, problem: string) {
    super(problem);
    this.text = text;
  }
}

const nanosPerUnit = 10n ** 9n;
/** Amounts beyond ±(2⁶³−1) are held at that bound, as the API server does. */
const largest = (2n ** 63n - 1n) * nanosPerUnit;
const decimalSuffixes: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  '': 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};
const binarySuffixes = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];
const decimalNames = new Map(Object.entries(decimalSuffixes).map(([suffix, power]) => [power, suffix]));

const shape = /^([+-]?)(\d*)(?:\.(\d*))?([eEinumkKMGTP]*[-+]?\d*)$/;
const wrongShape =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const wrongSuffix = "unable to parse quantity's suffix";

export const zeroQuantity: Quantity = { nano: 0n, format: 'DecimalSI' };

/** Reads a quantity; numbers stand for themselves, as in unquoted YAML. Throws {@link QuantityError}. */
export function parseQuantity(input: string | number): Quantity {
  const text = typeof input === 'number' ? String(input) : input;
  const parts = shape.exec(text);
  if (!parts) throw new QuantityError(text, wrongShape);
  const [, sign = '', whole = '', fraction = '', suffix = ''] = parts;
  if (whole === '' && fraction === '') throw new QuantityError(text, wrongShape);
  const scale = readSuffix(suffix);
  if (!scale) throw new QuantityError(text, wrongSuffix);

  const magnitude = nanosOf(whole, fraction, scale.power10, scale.power2);
  let format = scale.format;
  // A fraction of one cannot be shown in powers of 1024, so it is printed as a decimal.
  if (format === 'BinarySI' && magnitude > 0n && magnitude < nanosPerUnit) format = 'DecimalSI';
  return { nano: sign === '-' ? -magnitude : magnitude, format };
}

/** As {@link parseQuantity}, but `undefined` instead of an error. */
export function tryParseQuantity(input: string | number | undefined): Quantity | undefined {
  if (input === undefined) return undefined;
  try {
    return parseQuantity(input);
  } catch (error) {
    if (error instanceof QuantityError) return undefined;
    throw error;
  }
}

function readSuffix(suffix: string): { format: QuantityFormat; power10: number; power2: number } | undefined {
  const decimal = decimalSuffixes[suffix];
  if (decimal !== undefined) return { format: 'DecimalSI', power10: decimal, power2: 0 };
  const binary = binarySuffixes.indexOf(suffix);
  if (binary > 0) return { format: 'BinarySI', power10: 0, power2: binary * 10 };
  if (/^[eE][-+]?\d+$/.test(suffix)) {
    const power10 = Number(suffix.slice(1));
    if (Math.abs(power10) < 2 ** 31) return { format: 'DecimalExponent', power10, power2: 0 };
  }
  return undefined;
}

/** Nanos of `whole.fraction × 10^power10 × 2^power2`, rounded up to a whole nano and held at the bound. */
function nanosOf(whole: string, fraction: string, power10: number, power2: number): bigint {
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  if (digits === '') return 0n;
  const exponent = power10 - fraction.length + 9;
  // Decide extremes by their size, so that a hostile exponent never makes a huge number.
  if (digits.length + exponent > 60) return largest;
  if (digits.length + exponent < -60) return 1n;
  let numerator = BigInt(digits) << BigInt(power2);
  let nano: bigint;
  if (exponent >= 0) nano = numerator * 10n ** BigInt(exponent);
  else {
    const divisor = 10n ** BigInt(-exponent);
    numerator += divisor - 1n;
    nano = numerator / divisor;
  }
  return nano > largest ? largest : nano;
}

/** The text the API server prints: no fraction, the largest suffix that keeps the value exact. */
export function formatQuantity(quantity: Quantity): string {
  const { nano } = quantity;
  if (nano === 0n) return '0';
  const magnitude = nano < 0n ? -nano : nano;
  const sign = nano < 0n ? '-' : '';
  if (
    quantity.format === 'BinarySI' &&
    magnitude >= 1024n * nanosPerUnit &&
    magnitude % nanosPerUnit === 0n
  ) {
    let amount = magnitude / nanosPerUnit;
    let step = 0;
    while (step < binarySuffixes.length - 1 && amount % 1024n === 0n) {
      amount /= 1024n;
      step++;
    }
    return `${sign}${amount}${binarySuffixes[step]}`;
  }
  let amount = magnitude;
  let power = -9;
  while (power < 18 && amount % 1000n === 0n) {
    amount /= 1000n;
    power += 3;
  }
  if (quantity.format !== 'DecimalExponent') return `${sign}${amount}${decimalNames.get(power)}`;
  return `${sign}${amount}${power === 0 ? '' : `e${power}`}`;
}

/** Negative, zero or positive as `a` is less than, equal to or greater than `b`. */
export function compareQuantities(a: Quantity, b: Quantity): number {
  return a.nano < b.nano ? -1 : a.nano > b.nano ? 1 : 0;
}

/** The sum; it keeps the format of `a`, or of `b` when `a` is zero. */
export function addQuantities(a: Quantity, b: Quantity): Quantity {
  return { nano: a.nano + b.nano, format: a.nano === 0n ? b.format : a.format };
}

/** The difference; it keeps the format of `a`, or of `b` when `a` is zero. */
export function subtractQuantities(a: Quantity, b: Quantity): Quantity {
  return { nano: a.nano - b.nano, format: a.nano === 0n ? b.format : a.format };
}

export function maxQuantity(a: Quantity, b: Quantity): Quantity {
  return b.nano > a.nano ? b : a;
}

/** A quantity of `units` whole units, for example bytes or CPUs. */
export function quantityOf(units: number | bigint, format: QuantityFormat = 'DecimalSI'): Quantity {
  return { nano: BigInt(units) * nanosPerUnit, format };
}

/** Whole units, rounded away from zero (bytes of memory, pods, devices). Exact below 2⁵³. */
export function quantityValue(quantity: Quantity): number {
  return Number(roundedAway(quantity.nano, nanosPerUnit));
}

/** Thousandths, rounded away from zero (milli-CPUs). Exact below 2⁵³. */
export function quantityMilliValue(quantity: Quantity): number {
  return Number(roundedAway(quantity.nano, 10n ** 6n));
}

function roundedAway(nano: bigint, divisor: bigint): bigint {
  return nano >= 0n ? (nano + divisor - 1n) / divisor : -((-nano + divisor - 1n) / divisor);
}
