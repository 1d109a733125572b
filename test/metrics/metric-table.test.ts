/**
 * The agent's metrics are a kubelet's: every metric it declares has the type, labels and buckets of
 * Kubernetes 1.36 or is marked as its own, and those it has not are listed with the reason.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createOwnCgroup, removeOwnCgroup } from '../../scripts/machine/own-cgroup.ts';
import { unmountBelow } from '../../scripts/machine/teardown.ts';
import { type RunningAgent, startNodeAgent } from '../../src/agent/node-agent.ts';
import { programMetrics } from '../../src/cli/program-metrics.ts';
import { systemClock } from '../../src/concurrency/clock.ts';
import { diskFiles } from '../../src/config/disk-files.ts';
import { loadConfiguration } from '../../src/config/load-configuration.ts';
import { resolveSettings } from '../../src/config/settings.ts';
import { silentLogger } from '../../src/telemetry/logger.ts';
import type { MetricDeclaration } from '../../src/telemetry/metrics-registry.ts';
import { conditionOf } from '../e2e/cluster-agent.ts';
import { type ApiServer, startApiServer } from '../fixtures/apiserver/start-api-server.ts';
import { type FakeRuntimeServer, startFakeRuntime } from '../fixtures/cri-runtime/fake-runtime-server.ts';
import { missingMetrics, occasionalMetrics } from './missing-metrics.ts';

interface Fact extends MetricDeclaration {
  readonly endpoint: string;
}

const facts = JSON.parse(
  readFileSync(join(import.meta.dirname, 'kubernetes-metrics.json'), 'utf8'),
) as readonly Fact[];

const directory = mkdtempSync(join(tmpdir(), 'kubelet-ts-metrics-'));
const cgroup = basename(directory);

describe("the agent's metrics", () => {
  let server: ApiServer;
  let runtime: FakeRuntimeServer;
  let agent: RunningAgent | undefined;
  let declared: Readonly<Record<string, readonly MetricDeclaration[]>>;

  before(async () => {
    server = await startApiServer();
    runtime = await startFakeRuntime({ clock: systemClock });
    const kubeconfig = join(directory, 'kubeconfig');
    writeFileSync(kubeconfig, server.kubeconfigFor('system:node:node'));
    const file = join(directory, 'config.json');
    writeFileSync(
      file,
      JSON.stringify({
        apiVersion: 'kubelet.config.k8s.io/v1beta1',
        kind: 'KubeletConfiguration',
        failCgroupV1: false,
        failSwapOn: false,
        cgroupRoot: createOwnCgroup(cgroup),
        containerRuntimeEndpoint: `unix://${runtime.socket}`,
        podLogsDir: join(directory, 'pods'),
        healthzPort: 0,
        enableServer: false,
        rotateCertificates: true,
        serverTLSBootstrap: true,
        memorySwap: {},
      }),
    );
    const argv = [`--config=${file}`, `--root-dir=${join(directory, 'root')}`, `--kubeconfig=${kubeconfig}`];
    const loaded = loadConfiguration([...argv, '--hostname-override=node'], { ...diskFiles, cwd: directory });
    assert.ok(loaded.ok, JSON.stringify(loaded));
    const { metrics, probeMetrics } = programMetrics(loaded.gates, 'v1.36.2');
    agent = await startNodeAgent({
      settings: resolveSettings(loaded),
      featureEnabled: (gate) => loaded.gates.enabled(gate as Parameters<typeof loaded.gates.enabled>[0]),
      clock: systemClock,
      logger: silentLogger,
      metrics,
      probeMetrics,
      about: {
        configuration: loaded.configuration,
        flags: {},
        version: 'v1.36.2',
        startedAt: systemClock.now(),
        setVerbosity() {},
      },
    });
    // What only a member of a cluster counts is declared on the way to becoming one.
    const isReady = (node: unknown) => conditionOf(node, 'Ready') !== undefined;
    await server.admin.watchUntil('nodes', 'node', isReady, { timeoutMs: 60_000 });
    declared = { '/metrics': metrics.declarations(), '/metrics/probes': probeMetrics.declarations() };
  });

  after(async () => {
    await agent?.stop();
    await runtime.close();
    await server.close();
    await unmountBelow(directory);
    await removeOwnCgroup(cgroup);
    rmSync(directory, { recursive: true, force: true });
  });

  for (const endpoint of ['/metrics', '/metrics/probes']) {
    it(`have the names, labels and buckets of Kubernetes on ${endpoint}`, () => {
      const known = new Map(
        facts.filter((fact) => fact.endpoint === endpoint).map((fact) => [fact.name, fact]),
      );
      for (const metric of declared[endpoint] ?? []) {
        if (metric.name.startsWith('kubelet_ts_')) continue;
        const fact = known.get(metric.name);
        assert.ok(fact, `${metric.name} is a metric of Kubernetes, or is to begin with kubelet_ts_`);
        // Where the table names no buckets any will do.
        const buckets = fact.buckets.length === 0 ? fact.buckets : metric.buckets;
        assert.deepEqual({ ...fact, ...metric, buckets }, fact);
      }
    });

    it(`are on ${endpoint} all but those that are listed as missing`, () => {
      const there = new Set(declared[endpoint]?.map(({ name }) => name));
      const wanted = facts.filter((fact) => fact.endpoint === endpoint).map(({ name }) => name);
      const missing = wanted.filter((name) => !there.has(name) && !occasionalMetrics.includes(name));
      const listed = Object.keys(missingMetrics).filter((name) => wanted.includes(name));
      assert.deepEqual(missing.sort(), listed.sort(), 'missing-metrics.ts lists what is missing');
    });
  }

  it('are listed in the documentation, those that are missing with the reason', () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/metrics.md'), 'utf8');
    for (const [name, reason] of Object.entries(missingMetrics)) {
      assert.ok(page.includes(`| \`${name}\` | ${reason} |`), `docs/metrics.md tells why ${name} is missing`);
    }
    const rows = page.slice(page.indexOf('metrics of a kubelet are missing')).match(/^\| `/gm) ?? [];
    assert.equal(rows.length, Object.keys(missingMetrics).length, 'no row of what is there');
    for (const { name } of declared['/metrics'] ?? []) {
      if (name.startsWith('kubelet_ts_'))
        assert.ok(page.includes(`\`${name}\``), `docs/metrics.md names ${name}`);
    }
  });
});
