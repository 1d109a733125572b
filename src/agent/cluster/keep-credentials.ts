/**
 * Gets the node its credentials, in the background, and keeps them fresh. A kubeconfig that cannot be used
 * is no reason to let static pods down: it is said once, and looked at again until it can.
 *
 * Differs from the kubelet, which ends, to be started again and again.
 */
import type { ApiClient } from '../../client/api-client.ts';
import { sleep } from '../../concurrency/clock.ts';
import { type NodeCredentialsOptions, nodeCredentials } from '../../credentials/node-credentials.ts';

export interface KeepCredentialsOptions extends NodeCredentialsOptions {
  /** Takes the client once there is one. */
  readonly use: (client: ApiClient) => void;
  /** Gets credentials; those of `src/credentials` by default. */
  readonly obtain?: typeof nodeCredentials;
}

const firstPauseMs = 1000;
const longestPauseMs = 15_000;

/** Until `signal` aborts. */
export async function keepCredentials(options: KeepCredentialsOptions, signal: AbortSignal): Promise<void> {
  const { clock, logger } = options.client;
  const { obtain = nodeCredentials } = options;
  let said = '';
  for (let pause = firstPauseMs; !signal.aborted; pause = Math.min(2 * pause, longestPauseMs)) {
    try {
      const credentials = await obtain(options, signal);
      if (said !== '') logger.info('The kubeconfig can be used now');
      options.use(credentials.client);
      await credentials.run(signal);
      return;
    } catch (error) {
      if (signal.aborted) return;
      const text = error instanceof Error ? error.message : String(error);
      if (text !== said) {
        logger.error('This node cannot join its cluster yet; pods it has already are kept', text, {
          kubeconfig: options.kubeconfig,
        });
      }
      said = text;
      await sleep(clock, pause, signal).catch(() => {});
    }
  }
}
