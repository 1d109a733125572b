/** The tcpSocket probe: a connection that comes about is a success; it is closed at once. */
import { connect } from 'node:net';
import { failure, isTimeUp, type ProbeOutcome, success } from '../probe-outcome.ts';
import { hostAndPort, networkErrorText } from './network-error.ts';

/** `signal` ends the attempt, whether the time is up or nobody wants to know any more. */
export function probeTcpSocket(
  { host, port }: { readonly host: string; readonly port: number },
  signal: AbortSignal,
): Promise<ProbeOutcome> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (outcome: ProbeOutcome) => {
      signal.removeEventListener('abort', onAbort);
      socket.destroy();
      resolve(outcome);
    };
    const onAbort = () => {
      const why = isTimeUp(signal) ? 'i/o timeout' : 'operation was canceled';
      end(failure(`dial tcp ${hostAndPort(host, port)}: ${why}`));
    };
    socket.once('connect', () => end(success()));
    socket.on('error', (error) => end(failure(networkErrorText(error))));
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
  });
}
