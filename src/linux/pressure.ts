/** Pressure stall information (PSI) as the kernel writes it in `/proc/pressure` and `*.pressure`. Pure. */

export interface PressureFigures {
  /** Microseconds since the start, as the kernel counts. */
  readonly total: number;
  /** Per cent of the last 10, 60 and 300 seconds. */
  readonly avg10: number;
  readonly avg60: number;
  readonly avg300: number;
}

export interface Pressure {
  /** At least one task had to wait. */
  readonly some: PressureFigures;
  /** Every task that was not idle had to wait at once. */
  readonly full: PressureFigures;
}

const none: PressureFigures = { total: 0, avg10: 0, avg60: 0, avg300: 0 };
const line = /^(some|full) avg10=([\d.]+) avg60=([\d.]+) avg300=([\d.]+) total=(\d+)$/gm;

/** `undefined` for what is no pressure file, as where PSI is switched off. A missing `full` line is all zero. */
export function parsePressure(text: string | undefined): Pressure | undefined {
  if (text === undefined) return undefined;
  const found: { some?: PressureFigures; full?: PressureFigures } = {};
  for (const [, kind, avg10, avg60, avg300, total] of text.matchAll(line)) {
    found[kind as 'some' | 'full'] = {
      total: Number(total),
      avg10: Number(avg10),
      avg60: Number(avg60),
      avg300: Number(avg300),
    };
  }
  return found.some && { some: found.some, full: found.full ?? none };
}
