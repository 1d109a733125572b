/** What of the way into the cluster is in the way: kubeconfig, certificate, API server, clock, node name. */
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { ApiError } from '../../client/api-client.ts';
import { createApiClient, readKubeconfig } from '../../client/create-api-client.ts';
import { type Kubeconfig, KubeconfigError, type PemSource } from '../../client/kubeconfig.ts';
import { type Environment, ProxyVariableError } from '../../client/proxy-environment.ts';
import type { Clock } from '../../concurrency/clock.ts';
import { claimOf, isOfAnotherMachine, type MachineIds } from '../../node/name-claim.ts';
import type { Lease, Node } from '../../node/node-types.ts';
import { errorText } from '../../telemetry/error-text.ts';
import { silentLogger } from '../../telemetry/logger.ts';
import { silentMetrics } from '../../telemetry/metrics.ts';
import type { Finding } from './finding.ts';

export interface ClusterQuestion {
  /** `--kubeconfig`. */
  readonly kubeconfig: string;
  /** `--bootstrap-kubeconfig`; empty when not given. */
  readonly bootstrapKubeconfig: string;
  readonly nodeName: string;
  readonly machine: MachineIds;
  readonly environment: Environment;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const answerWithinMs = 10_000;
const dayMs = 86_400_000;
/** Certificates are renewed long before. */
const soonMs = 7 * dayMs;

export async function clusterFindings(question: ClusterQuestion): Promise<Finding[]> {
  const { clock, bootstrapKubeconfig } = question;
  const read = await readEither(question);
  if ('finding' in read) return [read.finding];
  const { kubeconfig } = read;
  const isBootstrap = kubeconfig.path === bootstrapKubeconfig;
  const certificate = await certificateFinding(kubeconfig, bootstrapKubeconfig, clock.now());
  // With such a certificate every question would be refused for the same reason.
  if (certificate?.severity === 'error') return [certificate];
  return [...(certificate ? [certificate] : []), ...(await ask(question, kubeconfig, isBootstrap))];
}

/** Before the first start there is only the bootstrap kubeconfig. */
async function readEither({
  kubeconfig,
  bootstrapKubeconfig,
}: ClusterQuestion): Promise<{ kubeconfig: Kubeconfig } | { finding: Finding }> {
  try {
    return { kubeconfig: await readKubeconfig(kubeconfig) };
  } catch (error) {
    if (!(error instanceof KubeconfigError)) throw error;
    const isAbsent = (error.cause as NodeJS.ErrnoException | undefined)?.code === 'ENOENT';
    if (isAbsent && bootstrapKubeconfig !== '')
      return await readEither({
        kubeconfig: bootstrapKubeconfig,
        bootstrapKubeconfig: '',
      } as ClusterQuestion);
    return {
      finding: {
        check: 'kubeconfig',
        severity: 'error',
        object: kubeconfig,
        problem: error.message,
        remedy: 'Have it written anew (kubeadm join), or correct --kubeconfig and --bootstrap-kubeconfig',
      },
    };
  }
}

async function certificateFinding(
  { path, user }: Kubeconfig,
  bootstrapKubeconfig: string,
  now: number,
): Promise<Finding | undefined> {
  if (!user.clientCertificate) return undefined;
  const { certificate } = user.clientCertificate;
  const object = 'file' in certificate ? certificate.file : path;
  const remedy =
    bootstrapKubeconfig !== ''
      ? 'The agent asks for a new one by --bootstrap-kubeconfig; a token there must still be valid'
      : 'Join again (kubeadm join), or renew it by hand';
  try {
    const expires = Date.parse(new X509Certificate(await pemOf(certificate)).validTo);
    if (expires - now > soonMs) return undefined;
    const isOver = expires <= now;
    return {
      check: 'client-certificate',
      severity: isOver && bootstrapKubeconfig === '' ? 'error' : 'warning',
      object,
      problem: `The client certificate ${isOver ? 'expired' : 'expires'} at ${new Date(expires).toISOString()}`,
      remedy: isOver ? remedy : 'rotateCertificates: true in the --config file renews it in time',
    };
  } catch (error) {
    return {
      check: 'client-certificate',
      severity: 'error',
      object,
      problem: `The client certificate cannot be read: ${errorText(error)}`,
      remedy,
    };
  }
}

async function pemOf(source: PemSource): Promise<string> {
  return 'pem' in source ? source.pem : await readFile(source.file, 'utf8');
}

async function ask(
  question: ClusterQuestion,
  kubeconfig: Kubeconfig,
  isBootstrap: boolean,
): Promise<Finding[]> {
  const { clock, nodeName, signal, environment } = question;
  const { server } = kubeconfig.cluster;
  let skewMs: number | undefined;
  let client: ReturnType<typeof createApiClient>;
  try {
    client = createApiClient(kubeconfig, {
      userAgent: 'kubelet-doctor',
      qps: 50,
      burst: 100,
      clock,
      random: Math.random,
      logger: silentLogger,
      metrics: silentMetrics,
      environment,
      onDate: (serverTime) => {
        skewMs ??= clock.now() - serverTime;
      },
    });
  } catch (error) {
    if (!(error instanceof ProxyVariableError)) throw error;
    return [unreachable(server, error)];
  }
  const get = async <T>(path: string): Promise<T | undefined> => {
    try {
      return await client.request<T>({ method: 'GET', path, timeoutMs: answerWithinMs, signal });
    } catch (error) {
      if (error instanceof ApiError && error.notFound) return undefined;
      throw error;
    }
  };
  try {
    if (isBootstrap) {
      await get('/version');
      return clockFindings(`API server ${server}`, skewMs);
    }
    const node = await get<Node>(`/api/v1/nodes/${nodeName}`);
    const isForeign = node !== undefined && isOfAnotherMachine(node, question.machine);
    const lease = isForeign
      ? await get<Lease>(`/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${nodeName}`)
      : undefined;
    const { alive } = claimOf(lease, undefined, clock.now());
    return [
      ...clockFindings(`API server ${server}`, skewMs),
      ...(isForeign ? [takenName(nodeName, node, alive)] : []),
    ];
  } catch (error) {
    signal.throwIfAborted();
    return [...clockFindings(`API server ${server}`, skewMs), unreachable(server, error)];
  } finally {
    client.close();
  }
}

function unreachable(server: string, error: unknown): Finding {
  return {
    check: 'api-server',
    severity: 'error',
    object: server,
    problem: `The API server gives no answer to work with: ${errorText(error)}`,
    remedy: 'Pods that run go on meanwhile, and the agent tries again by itself',
  };
}

const skewLimits = { warning: 30_000, error: 300_000 };

/** Certificates and tokens are made for times that both sides agree on. */
/** `whose`: with whose clock this machine's differs by `skewMs`; undefined when that is not known. */
export function clockFindings(whose: string, skewMs: number | undefined): Finding[] {
  const amount = Math.abs(skewMs ?? 0);
  if (skewMs === undefined || amount < skewLimits.warning) return [];
  return [
    {
      check: 'clock',
      severity: amount < skewLimits.error ? 'warning' : 'error',
      object: 'the clock of this machine',
      problem:
        `It is ${Math.round(amount / 1000)} s ${skewMs < 0 ? 'behind' : 'ahead of'} that of ${whose}, ` +
        'so certificates and tokens may be refused',
      remedy: 'Set it by NTP (timedatectl set-ntp true)',
    },
  ];
}

function takenName(nodeName: string, { status }: Node, alive: boolean): Finding {
  const other = status?.nodeInfo?.machineID ?? '';
  return {
    check: 'node-name',
    severity: alive ? 'error' : 'warning',
    object: `node ${nodeName}`,
    problem: alive
      ? `Another machine (machine id ${other}) has this name and is alive`
      : `The node's object was written by another machine (machine id ${other}), which is silent; this one takes it over`,
    remedy: alive
      ? 'Give this one another name (--hostname-override), or take the other one out of the cluster'
      : `If that is not meant, give this one another name (--hostname-override); else kubectl delete node ${nodeName}`,
  };
}
