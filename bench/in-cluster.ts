/**
 * What the agent costs the API server: requests at its start, for the life of a pod, and in a minute in which
 * nothing happens, as the test API server's audit log has them.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { demoImages } from '../scripts/machine/demo-images.ts';
import { startApiServer } from '../test/fixtures/apiserver/start-api-server.ts';
import { now } from './measure.ts';
import type { Results } from './results.ts';
import type { Stage } from './stage.ts';

const nodeName = 'bench-node';
const user = `system:node:${nodeName}`;
const limit = { timeoutMs: 60_000 };
/** Trailing reports and events belong to what was before. */
const settleMs = 3000;
/** A lease is renewed every ten seconds. */
const leastIdleSeconds = 30;

export interface InClusterPart {
  readonly stage: Stage;
  readonly results: Results;
  readonly times: {
    /** Pods of an API server, one at a time. */
    readonly cluster: number;
    readonly idleSeconds: number;
  };
}

export async function inCluster({ stage, results, times }: InClusterPart): Promise<void> {
  await using server = await startApiServer();
  const kubeconfig = join(stage.directory, 'kubeconfig');
  writeFileSync(kubeconfig, server.kubeconfigFor(user));
  /** Requests of the agent since this was asked last. */
  const requests = (): number => {
    const count = server.requests.filter((request) => request.user === user).length;
    server.requests.length = 0;
    return count;
  };
  const settle = (): Promise<void> => pause(settleMs, undefined, { signal: stage.stop });
  const create = (name: string): void => {
    const container = { name: 'main', image: demoImages.busybox, imagePullPolicy: 'IfNotPresent' };
    const spec = { nodeName, dnsPolicy: 'Default', containers: [container] };
    server.admin.create({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec });
  };
  const ready = (name: string) => server.admin.watchUntil('pods', `default/${name}`, isReady, limit);
  const remove = async (name: string): Promise<void> => {
    server.admin.delete('pods', `default/${name}`);
    await server.admin.watchUntil('pods', `default/${name}`, (pod) => pod === undefined, limit);
  };

  const flags = [`--kubeconfig=${kubeconfig}`, `--cert-dir=${join(stage.directory, 'pki')}`];
  const agent = stage.startAgent(flags);
  await server.admin.watchUntil('nodes', nodeName, isReady, limit);
  results.agent('clusterReady', (now() - agent.startedAt) / 1000);
  await settle();
  results.agent('clusterStart', requests());

  for (let round = 0; round < times.cluster; round++) {
    create(`pod-${round}`);
    await ready(`pod-${round}`);
    await remove(`pod-${round}`);
  }
  await settle();
  results.agent('clusterPod', Number((requests() / times.cluster).toFixed(1)));

  create('lasting');
  await ready('lasting');
  await settle();
  requests();
  const idleSeconds = Math.max(times.idleSeconds, leastIdleSeconds);
  await pause(idleSeconds * 1000, undefined, { signal: stage.stop });
  results.agent('clusterIdle', Number(((requests() * 60) / idleSeconds).toFixed(1)));
  await remove('lasting');
  await agent.end();
}

function isReady(object: unknown): boolean {
  const { status } = (object ?? {}) as { status?: { conditions?: { type: string; status: string }[] } };
  return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
}
