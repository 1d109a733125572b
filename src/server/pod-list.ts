/**
 * Writes pods as a core/v1 PodList, one by one: a node with many pods never holds the whole text in
 * memory, and a slow reader slows only its own answer.
 */
import { once } from 'node:events';
import type { Pod, PodManifest } from '../kubernetes/types.ts';
import type { Exchange } from './route.ts';

export async function sendPodList(
  { response, method, signal }: Pick<Exchange, 'response' | 'method' | 'signal'>,
  pods: Iterable<Pod | PodManifest>,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/json' });
  if (method === 'HEAD') return void response.end();
  response.write('{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[');
  let separator = '';
  for (const pod of pods) {
    // Items of a list carry no kind and apiVersion of their own.
    const { kind: _kind, apiVersion: _apiVersion, ...item } = pod;
    if (!response.write(separator + JSON.stringify(item))) await once(response, 'drain', { signal });
    separator = ',';
  }
  response.end(']}\n');
}
