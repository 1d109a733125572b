/**
 * One run of a probe: finds the handler, bounds it in time, tries again when the probe itself could not be
 * made. Never rejects. Costs one timer while it runs and what its handler needs, nothing before or after.
 */
import type { Clock } from '../concurrency/clock.ts';
import type { Probe } from '../kubernetes/types.ts';
import { type ExecSync, execDeadlineMs, probeExec } from './handlers/exec.ts';
import { type ContainerProcesses, ExecLeftovers } from './handlers/exec-leftovers.ts';
import { probeGrpcHealth } from './handlers/grpc-health.ts';
import { probeHttpGet } from './handlers/http-get.ts';
import { probeTcpSocket } from './handlers/tcp-socket.ts';
import { type ProbeOutcome, ProbeTimeoutError, unknown } from './probe-outcome.ts';
import { type ProbeSubject, probeCommand, probeHost, probePort } from './probe-target.ts';

/** Attempts of one run while the outcome stays unknown. */
const attempts = 3;

const userAgent = 'kube-probe/1.36';

/** One run to make. */
export interface ProbeRun {
  readonly probe: Probe;
  readonly subject: ProbeSubject;
  readonly timeoutMs: number;
  /** Gives the run up; its outcome then means nothing. */
  readonly signal: AbortSignal;
}

/** Makes runs of probes of every handler. */
export class ProbeRunner {
  readonly #clock: Clock;
  readonly #exec: ExecSync;
  readonly #processes: ContainerProcesses | undefined;

  /** Without `processes`, what an exec probe leaves behind at its time-out stays. */
  constructor(options: { clock: Clock; exec: ExecSync; processes?: ContainerProcesses | undefined }) {
    this.#clock = options.clock;
    this.#exec = options.exec;
    this.#processes = options.processes;
  }

  async run(run: ProbeRun): Promise<ProbeOutcome> {
    let outcome = unknown('not run');
    for (
      let attempt = 0;
      attempt < attempts && outcome.result === 'unknown' && !run.signal.aborted;
      attempt++
    ) {
      outcome = await this.#attempt(run);
    }
    return outcome;
  }

  async #attempt(run: ProbeRun): Promise<ProbeOutcome> {
    const { probe, timeoutMs, signal } = run;
    const abort = new AbortController();
    const onAbort = () => abort.abort(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    const cancelDeadline = this.#clock.after(probe.exec ? execDeadlineMs(timeoutMs) : timeoutMs, () =>
      abort.abort(new ProbeTimeoutError(timeoutMs)),
    );
    try {
      return await this.#handle(run, abort.signal);
    } catch (error) {
      return unknown(error instanceof Error ? error.message : String(error));
    } finally {
      cancelDeadline();
      signal.removeEventListener('abort', onAbort);
    }
  }

  async #handle({ probe, subject, timeoutMs }: ProbeRun, signal: AbortSignal): Promise<ProbeOutcome> {
    const { container, containerId } = subject;
    const { httpGet, tcpSocket, grpc } = probe;
    if (probe.exec) {
      const command = probeCommand(probe, container);
      const leftovers =
        this.#processes &&
        new ExecLeftovers({
          processes: this.#processes,
          clock: this.#clock,
          containerId,
          command,
          timeoutMs,
        });
      try {
        return await probeExec({ exec: this.#exec, containerId, command, timeoutMs, leftovers }, signal);
      } finally {
        leftovers?.end();
      }
    }
    if (httpGet) {
      const target = {
        scheme: httpGet.scheme?.toLowerCase() === 'https' ? ('https' as const) : ('http' as const),
        host: probeHost(httpGet.host, subject),
        port: probePort(httpGet.port, container),
        path: httpGet.path ?? '/',
        headers: httpGet.httpHeaders ?? [],
        userAgent,
      };
      return await probeHttpGet(target, signal);
    }
    if (tcpSocket) {
      const host = probeHost(tcpSocket.host, subject);
      return await probeTcpSocket({ host, port: probePort(tcpSocket.port, container) }, signal);
    }
    if (grpc) {
      const host = probeHost(undefined, subject);
      const port = probePort(grpc.port, container);
      return await probeGrpcHealth({ host, port, service: grpc.service ?? '', userAgent }, signal);
    }
    return unknown(`missing probe handler for container ${container.name}`);
  }
}
