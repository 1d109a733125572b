import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { MetricsRegistry } from '../telemetry/metrics-registry.ts';
import { RequestMeter } from './request-meter.ts';

test('requests are counted while they last and when they are over, by what is known of them only', async () => {
  const metrics = new MetricsRegistry();
  const clock = new VirtualClock();
  const paths = [
    '/metrics',
    '/metrics/cadvisor',
    '/exec/{podNamespace}/{podID}/{containerName}',
    '/portForward/{podNamespace}/{podID}',
    '/logs/',
  ];
  const meter = new RequestMeter({ routes: paths.map((path) => ({ path })), metrics, clock });
  const begin = (method: string, url: string, upgrade?: string, protocol?: string) =>
    meter.begin('readwrite', {
      method,
      url,
      headers: { ...(upgrade && { upgrade }), ...(protocol && { 'sec-websocket-protocol': protocol }) },
    });
  const shown = async () => await metrics.exposition();

  const ends = [
    begin('GET', '/metrics/cadvisor?x=1'),
    begin('GET', '/metrics/invented'),
    begin('BREW', '/logs/messages'),
    begin('POST', '/exec/default/web/app?command=ls', 'WebSocket', 'v5.channel.k8s.io'),
    begin('POST', '/exec/default/web/app', 'websocket', 'v4.channel.k8s.io'),
    begin('POST', '/portForward/default/web', 'websocket', 'SPDY/3.1+portforward.k8s.io'),
    begin('POST', '/exec/default/web/app', 'SPDY/3.1'),
  ];
  const cadvisor = '{long_running="false",method="GET",path="metrics/cadvisor",server_type="readwrite"}';
  const exec = '{long_running="true",method="POST",path="exec",server_type="readwrite"}';
  const during = await shown();
  for (const line of [
    `kubelet_http_requests_total${cadvisor} 1`,
    `kubelet_http_inflight_requests${cadvisor} 1`,
    'kubelet_http_requests_total{long_running="false",method="GET",path="other",server_type="readwrite"} 1',
    'kubelet_http_requests_total{long_running="false",method="other",path="logs",server_type="readwrite"} 1',
    `kubelet_http_requests_total${exec} 3`,
    `kubelet_http_inflight_requests${exec} 3`,
    'kubelet_websocket_streaming_requests_total{subresource="exec"} 1',
    'kubelet_websocket_streaming_requests_total{subresource="portforward"} 1',
  ]) {
    assert.ok(during.includes(`${line}\n`), `${line} in\n${during}`);
  }
  await clock.advance(2000);
  for (const end of ends) end();
  const after = await shown();
  assert.ok(after.includes(`kubelet_http_inflight_requests${exec} 0\n`));
  assert.ok(after.includes(`kubelet_http_requests_duration_seconds_sum${exec} 6\n`), after);
});
