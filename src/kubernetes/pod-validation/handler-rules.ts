/** Rules for probes and lifecycle hooks, which share their handlers (exec, httpGet, tcpSocket, …). */
import { checkPortName, checkPortNumber } from '../names.ts';
import type { FieldErrors } from './field-error.ts';
import { isBlank, isEmptyList, type RuleContext } from './rule-context.ts';
import type { Container, IntOrString, Lifecycle, LifecycleHandler, Probe } from './unvalidated-pod.ts';

type Handlers = Pick<Probe, 'exec' | 'httpGet' | 'tcpSocket' | 'grpc'> & Pick<LifecycleHandler, 'sleep'>;

/** An HTTP header's name: the token of RFC 9110. */
const headerName = /^[-!#$%&'*+.^_`|~0-9A-Za-z]+$/;

const linuxSignals = new Set(
  (
    'ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT SEGV STKFLT STOP SYS ' +
    'TERM TRAP TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ RTMIN RTMAX'
  )
    .split(' ')
    .map((name) => `SIG${name}`),
);
for (let n = 1; n <= 15; n++) linuxSignals.add(`SIGRTMIN+${n}`);
for (let n = 1; n <= 14; n++) linuxSignals.add(`SIGRTMAX-${n}`);
const windowsSignals = new Set(['SIGTERM', 'SIGKILL']);

export function checkProbes(context: RuleContext, path: string, container: Container): void {
  const { errors } = context;
  const { livenessProbe, readinessProbe, startupProbe } = container;
  if (livenessProbe) {
    checkProbe(context, `${path}.livenessProbe`, livenessProbe);
    checkSingleSuccess(errors, `${path}.livenessProbe`, livenessProbe);
  }
  if (readinessProbe) {
    checkProbe(context, `${path}.readinessProbe`, readinessProbe);
    if (readinessProbe.terminationGracePeriodSeconds !== undefined) {
      errors.invalid(
        `${path}.readinessProbe.terminationGracePeriodSeconds`,
        readinessProbe.terminationGracePeriodSeconds,
        'must not be set for readiness probes, which never end a container',
      );
    }
  }
  if (startupProbe) {
    checkProbe(context, `${path}.startupProbe`, startupProbe);
    checkSingleSuccess(errors, `${path}.startupProbe`, startupProbe);
  }
}

function checkProbe(context: RuleContext, path: string, probe: Probe): void {
  const { errors } = context;
  checkHandlers(context, path, probe, ['exec', 'httpGet', 'tcpSocket', 'grpc']);
  errors.nonNegative(`${path}.initialDelaySeconds`, probe.initialDelaySeconds);
  errors.nonNegative(`${path}.timeoutSeconds`, probe.timeoutSeconds);
  errors.nonNegative(`${path}.periodSeconds`, probe.periodSeconds);
  errors.nonNegative(`${path}.successThreshold`, probe.successThreshold);
  errors.nonNegative(`${path}.failureThreshold`, probe.failureThreshold);
  const grace = probe.terminationGracePeriodSeconds;
  if (grace !== undefined && grace <= 0) {
    errors.invalid(`${path}.terminationGracePeriodSeconds`, grace, 'must be greater than 0');
  }
}

function checkSingleSuccess(errors: FieldErrors, path: string, probe: Probe): void {
  const threshold = probe.successThreshold;
  if (threshold !== undefined && threshold !== 1 && threshold >= 0) {
    errors.invalid(`${path}.successThreshold`, threshold, 'must be 1');
  }
}

export function checkLifecycle(context: RuleContext, path: string, lifecycle: Lifecycle): void {
  const kinds = ['exec', 'httpGet', 'tcpSocket', 'sleep'] as const;
  if (lifecycle.postStart) checkHandlers(context, `${path}.postStart`, lifecycle.postStart, kinds);
  if (lifecycle.preStop) checkHandlers(context, `${path}.preStop`, lifecycle.preStop, kinds);
  if (lifecycle.stopSignal !== undefined) {
    checkStopSignal(context.errors, `${path}.stopSignal`, lifecycle.stopSignal, context.spec.os?.name);
  }
}

function checkStopSignal(errors: FieldErrors, path: string, signal: string, os: string | undefined): void {
  if (isBlank(os)) {
    errors.forbidden(path, 'may not be set when `spec.os.name` is empty');
    return;
  }
  const known = os === 'windows' ? windowsSignals : linuxSignals;
  if (!known.has(signal)) errors.notSupported(path, signal, [...known]);
}

/** Exactly one handler of the given kinds, and the rules of that handler. */
function checkHandlers(
  context: RuleContext,
  path: string,
  handlers: Handlers,
  kinds: readonly (keyof Handlers)[],
): void {
  const { errors } = context;
  let given = 0;
  for (const kind of kinds) {
    if (handlers[kind] === undefined) continue;
    const at = `${path}.${kind}`;
    given++;
    if (given > 1) errors.forbidden(at, 'may not specify more than 1 handler type');
    else checkHandler(context, at, kind, handlers);
  }
  if (given === 0) errors.required(path, `must specify a handler type: ${kinds.join(', ')}`);
}

function checkHandler(context: RuleContext, path: string, kind: keyof Handlers, handlers: Handlers): void {
  const { errors, spec } = context;
  switch (kind) {
    case 'exec':
      if (isEmptyList(handlers.exec?.command)) errors.required(`${path}.command`);
      break;
    case 'tcpSocket':
      checkHandlerPort(errors, `${path}.port`, handlers.tcpSocket?.port);
      break;
    case 'grpc':
      checkHandlerPort(errors, `${path}.port`, handlers.grpc?.port);
      break;
    case 'httpGet': {
      const http = handlers.httpGet!;
      if (isBlank(http.path)) errors.required(`${path}.path`);
      checkHandlerPort(errors, `${path}.port`, http.port);
      errors.optionalOneOf(`${path}.scheme`, http.scheme ?? '', ['HTTP', 'HTTPS']);
      http.httpHeaders?.forEach(({ name }, index) => {
        if (!headerName.test(name ?? '')) {
          errors.invalid(`${path}.httpHeaders[${index}].name`, name ?? '', 'must be an HTTP header name');
        }
      });
      break;
    }
    case 'sleep': {
      const seconds = handlers.sleep?.seconds ?? 0;
      const grace = Math.max(spec.terminationGracePeriodSeconds ?? 30, 0);
      if (seconds < 0 || seconds > grace) {
        errors.invalid(
          `${path}.seconds`,
          seconds,
          `must be non-negative and not more than terminationGracePeriodSeconds (${grace})`,
        );
      }
      break;
    }
  }
}

function checkHandlerPort(errors: FieldErrors, path: string, port: IntOrString | undefined): void {
  const wrong = typeof port === 'string' ? checkPortName(port) : checkPortNumber(port ?? 0);
  errors.problems(path, port ?? 0, wrong);
}
