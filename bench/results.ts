/** Where measurements are gathered until the table is printed. */
import type { RowId } from './targets.ts';

interface Samples {
  readonly floor: number[];
  readonly agent: number[];
}

export class Results {
  readonly #samples = new Map<RowId, Samples>();

  floor(row: RowId, value: number): void {
    this.of(row).floor.push(value);
  }

  agent(row: RowId, value: number): void {
    this.of(row).agent.push(value);
  }

  of(row: RowId): Samples {
    let samples = this.#samples.get(row);
    if (samples === undefined) this.#samples.set(row, (samples = { floor: [], agent: [] }));
    return samples;
  }
}
