/**
 * Calls with the same key share one running call and its result. Nothing is cached: once it has settled,
 * the next call runs anew.
 */
export class SingleFlight<T> {
  readonly #flights = new Map<string, Promise<T>>();

  run(key: string, task: () => Promise<T>): Promise<T> {
    const current = this.#flights.get(key);
    if (current) return current;
    const flight = task().finally(() => this.#flights.delete(key));
    this.#flights.set(key, flight);
    return flight;
  }
}
