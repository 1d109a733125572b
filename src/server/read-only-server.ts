/**
 * The read-only endpoint without authentication (`--read-only-port`, 10255): pods, health and metrics over
 * plain HTTP. It changes nothing and runs nothing: the paths that could answer 405, as on a kubelet.
 */
import type { Clock } from '../concurrency/clock.ts';
import type { Logger } from '../telemetry/logger.ts';
import { disabledDebugging } from './debugging-paths.ts';
import { listen, type RunningServer } from './http-listener.ts';
import type { RequestMeter } from './request-meter.ts';
import type { NodeRoute } from './route.ts';
import { createRouter } from './router.ts';

export interface ReadOnlyServerOptions {
  address: string;
  port: number;
  /** Those that are not marked `readOnly` are left out. */
  routes: readonly NodeRoute[];
  meter: RequestMeter;
  clock: Clock;
  log: Logger;
}

/** Resolves when requests are served; rejects with a `ListenError` that tells what to change. */
export function startReadOnlyServer(options: ReadOnlyServerOptions): Promise<RunningServer> {
  const { address, port, clock, meter } = options;
  const log = options.log.with({ logger: 'server' });
  const setting = {
    server: 'the read-only API',
    portFlag: '--read-only-port (readOnlyPort)',
    addressFlag: '--address (address)',
  };
  const routes = [...options.routes.filter(({ readOnly }) => readOnly), ...disabledDebugging];
  return listen(
    { address, port, clock, log, setting },
    createRouter({ routes, meter: (request) => meter.begin('readonly', request), log }),
  );
}
