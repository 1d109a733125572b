/** Prometheus itself takes what the agent's endpoints say, and promtool finds nothing to object to. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { type PrometheusPrograms, prometheusPrograms } from '../../scripts/machine/prometheus.ts';
import { Agent, freePort, idle, shellPod } from './agent.ts';

const endpoints = ['/metrics', '/metrics/cadvisor', '/metrics/resource', '/metrics/probes'];

/**
 * What promtool objects to because Kubernetes, cAdvisor or a client library named a metric so: changing the
 * name would break whoever watches it.
 */
const namedByOthers: readonly RegExp[] = [
  /^\S+ counter metrics should have "_total" suffix$/,
  /^\S+ non-counter metrics should not have "_total" suffix$/,
  /^\S+ non-histogram and non-summary metrics should not have "_(count|sum|bucket)" suffix$/,
  /^\S+ metric name should not contain abbreviated units$/,
  /^cadvisor_version_info label names should be written in 'snake_case' not 'camelCase'$/,
  /^\S+ use base unit "\w+" instead of "\w+"$/,
];

describe('Prometheus', () => {
  const agent = new Agent();
  let programs: PrometheusPrograms;
  before(async () => {
    programs = await prometheusPrograms();
    await agent.start();
    agent.write('scraped', shellPod('scraped', idle));
    await agent.ready('scraped');
  });
  after(() => agent.dispose());

  for (const path of endpoints) {
    it(`promtool finds nothing to object to in ${path}`, async () => {
      const input = await (await agent.get(path)).text();
      const { status, stdout, stderr } = spawnSync(programs.promtool, ['check', 'metrics'], {
        input,
        encoding: 'utf8',
      });
      const objections = `${stdout}${stderr}`
        .split('\n')
        .filter((line) => line !== '' && !namedByOthers.some((known) => known.test(line)));
      assert.deepEqual(objections, []);
      // 3: it had something to say about style; everything else means that it could not read the text.
      assert.ok(status === 0 || status === 3, `${status}`);
    });
  }

  it('scrapes every endpoint', async () => {
    const port = await freePort();
    const scrapes = endpoints.map((path) => ({
      job_name: path,
      metrics_path: path,
      static_configs: [{ targets: [agent.readOnlyAddress] }],
    }));
    const configuration = {
      global: { scrape_interval: '1s', scrape_timeout: '1s' },
      scrape_configs: scrapes,
    };
    writeFileSync(agent.path('prometheus.yml'), JSON.stringify(configuration));
    const child = spawn(
      programs.prometheus,
      [
        `--config.file=${agent.path('prometheus.yml')}`,
        `--storage.tsdb.path=${agent.path('prometheus')}`,
        `--web.listen-address=127.0.0.1:${port}`,
        '--log.level=warn',
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    let complaints = '';
    child.stderr.on('data', (data: Buffer) => (complaints += data.toString()));
    const ask = async <T>(path: string): Promise<T> => {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`);
      return ((await answer.json()) as { data: T }).data;
    };
    type Targets = { activeTargets: { scrapePool: string; health: string; lastError: string }[] };
    try {
      let last: Targets['activeTargets'] = [];
      await agent.eventually(
        'scraped',
        async () => {
          last = (await ask<Targets>('/api/v1/targets')).activeTargets;
          return last.length === endpoints.length && last.every(({ health }) => health === 'up');
        },
        () => JSON.stringify(last) + complaints,
      );
      const found = async (query: string) =>
        (await ask<{ result: unknown[] }>(`/api/v1/query?query=${encodeURIComponent(query)}`)).result.length;
      await agent.eventually('kept', async () => {
        const counts = await Promise.all(
          [
            'kubelet_running_pods',
            'container_memory_working_set_bytes{job="/metrics/cadvisor",pod="scraped-node",container="main"}',
            'pod_cpu_usage_seconds_total{pod="scraped-node"}',
            'kubelet_evictions or kubelet_pod_start_duration_seconds_count',
          ].map(found),
        );
        return counts.every((count) => count === 1);
      });
      assert.doesNotMatch(complaints, /out of order|duplicate|Error on ingesting/i);
    } finally {
      child.kill('SIGTERM');
      if (child.exitCode === null) await once(child, 'exit');
    }
  });
});
