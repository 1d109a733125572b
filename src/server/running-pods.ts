/** `/runningpods/`: the pods that the runtime shows, whoever wants them. */
import type { PodManifest } from '../kubernetes/types.ts';
import { sendPodList } from './pod-list.ts';
import type { NodeRoute } from './route.ts';
import { sendText } from './router.ts';

export function runningPodsRoutes(pods: () => Iterable<PodManifest>): NodeRoute[] {
  return [
    {
      methods: ['GET'],
      path: '/runningpods/',
      debugging: true,
      handle: (exchange) =>
        exchange.rest === ''
          ? sendPodList(exchange, pods())
          : sendText(exchange.response, 404, '404: Page Not Found'),
    },
    {
      methods: ['GET'],
      path: '/runningpods',
      debugging: true,
      handle: ({ response }) => void response.writeHead(301, { location: '/runningpods/' }).end(),
    },
  ];
}
