/** Waiting for real work (files, promises) in tests whose clock stands still. */

/** Long enough for a slow disk; only a test that fails ever waits so long. */
const patienceMs = 15_000;

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Lets the event loop turn until `condition` holds; fails with `complaint` when it never does. */
export async function until(condition: () => boolean, complaint: () => string): Promise<void> {
  const end = performance.now() + patienceMs;
  while (!condition()) {
    if (performance.now() > end) throw new Error(complaint());
    await turn();
  }
}

/** Lets the event loop turn until nobody is `busy` and `activity` has stood still for a while. */
export async function quiet(activity: () => number, busy: () => boolean): Promise<void> {
  const end = performance.now() + patienceMs;
  let before = activity();
  for (let still = 0; still < 12; still++) {
    await turn();
    if (performance.now() > end) throw new Error('the loop never came to rest');
    if (!busy() && activity() === before) continue;
    before = activity();
    still = 0;
  }
}
