/**
 * The parts of prom-client that are loaded one by one: its main file also loads a push gateway and cluster
 * support, and with them `node:https`: 20 MiB and 130 ms for nothing.
 */
declare module 'prom-client/lib/registry.js' {
  import type { Registry } from 'prom-client';

  const part: typeof Registry;
  export default part;
}
declare module 'prom-client/lib/counter.js' {
  import type { Counter } from 'prom-client';

  const part: typeof Counter;
  export default part;
}
declare module 'prom-client/lib/gauge.js' {
  import type { Gauge } from 'prom-client';

  const part: typeof Gauge;
  export default part;
}
declare module 'prom-client/lib/histogram.js' {
  import type { Histogram } from 'prom-client';

  const part: typeof Histogram;
  export default part;
}
