/** The endpoints that tell of the node's statistics. */
import type { NodeRoute } from '../server/route.ts';
import type { NodeStats } from '../stats/node-stats.ts';
import { sendCompressed, sendExposition } from '../telemetry/send-exposition.ts';

/** `/stats/summary`, `/metrics/resource` and `/metrics/cadvisor`. */
export function statsRoutes(stats: () => NodeStats | undefined): NodeRoute[] {
  const metrics = (path: string, of: (stats: NodeStats) => NodeStats['resourceMetrics']): NodeRoute => ({
    methods: ['GET'],
    path,
    readOnly: true,
    handle: async (exchange) => {
      const current = stats();
      if (current === undefined) return sendStarting(exchange);
      await of(current)((text) => sendExposition(exchange, text));
    },
  });
  return [
    {
      methods: ['GET', 'POST'],
      path: '/stats/summary',
      readOnly: true,
      handle: async (exchange) => {
        const current = stats();
        if (current === undefined) return sendStarting(exchange);
        const { query, headers, response } = exchange;
        const isTrue = (value: string | null) =>
          ['1', 't', 'T', 'TRUE', 'true', 'True'].includes(value ?? '');
        const form =
          exchange.method === 'POST' ? new URLSearchParams(String(await exchange.body())) : undefined;
        const wanted = query.get('only_cpu_and_memory') ?? form?.get('only_cpu_and_memory') ?? null;
        const summary = await current.summary(isTrue(wanted));
        await sendCompressed(headers, response, JSON.stringify(summary), 'application/json');
      },
    },
    metrics('/metrics/resource', (current) => (send) => current.resourceMetrics(send)),
    metrics('/metrics/cadvisor', (current) => (send) => current.cadvisorMetrics(send)),
  ];
}

function sendStarting({ response }: Pick<Parameters<NodeRoute['handle']>[0], 'response'>): void {
  response.writeHead(503, { 'content-type': 'text/plain; charset=utf-8', 'retry-after': '1' });
  response.end('The node agent is starting; nothing is measured yet\n');
}
