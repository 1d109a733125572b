/** The HTTP form of a lifecycle hook: any answer counts as success, whatever its status. */
import type { Container, LifecycleHandler } from '../../kubernetes/types.ts';
import { HookError } from './hook-error.ts';

/** A request to make; the host is an address or a name. */
export interface HttpHook {
  readonly get: NonNullable<LifecycleHandler['httpGet']>;
  readonly container: Pick<Container, 'name' | 'ports'>;
  readonly podIp: string | undefined;
  readonly signal: AbortSignal;
  readonly onFallback: (host: string) => void;
}

const userAgent = 'kube-lifecycle/1.36';

/** Makes the request; rejects only when no answer comes. */
export async function askHttpHook({ get, container, podIp, signal, onFallback }: HttpHook): Promise<void> {
  const host = get.host || podIp;
  if (!host) throw new HookError('the pod has no address to send the hook to');
  const target: Target = {
    host,
    port: portOf(get, container),
    path: get.path || '/',
    headers: headersOf(get, host),
  };
  if ((get.scheme ?? 'HTTP').toLowerCase() !== 'https') {
    await answerOf('http', target, signal);
    return;
  }
  try {
    await answerOf('https', target, signal);
  } catch (error) {
    if (!isPlainHttpAnswer(error)) throw error;
    // A server that speaks plain HTTP must not be sent credentials meant for an encrypted one.
    const { authorization: _, ...headers } = target.headers;
    await answerOf('http', { ...target, headers }, signal);
    onFallback(host);
  }
}

interface Target {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

function portOf({ port }: HttpHook['get'], { name, ports }: HttpHook['container']): number {
  const number = typeof port === 'number' ? port : Number(port);
  if (Number.isInteger(number) && number > 0 && number < 65_536) return number;
  const named = ports?.find((candidate) => candidate.name === port);
  if (named) return named.containerPort;
  throw new HookError(`container ${name} has no port named ${JSON.stringify(port)}`);
}

function headersOf({ httpHeaders }: HttpHook['get'], host: string): Record<string, string> {
  const headers: Record<string, string> = { host, 'user-agent': userAgent, accept: '*/*' };
  for (const { name, value } of httpHeaders ?? []) headers[name.toLowerCase()] = value;
  return headers;
}

/** Resolves when an answer has begun; its body is of no interest. */
async function answerOf(scheme: 'http' | 'https', target: Target, signal: AbortSignal): Promise<void> {
  const { request } = scheme === 'http' ? await import('node:http') : await import('node:https');
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const asked = request(
    { ...target, agent: false, signal, ...(scheme === 'https' && { rejectUnauthorized: false }) },
    (response) => {
      response.destroy();
      resolve();
    },
  );
  asked.on('error', reject);
  asked.end();
  await promise;
}

function isPlainHttpAnswer(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return (
    code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG' || code === 'EPROTO'
  );
}
