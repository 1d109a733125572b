/**
 * `status.conditions`: MemoryPressure, DiskPressure, PIDPressure and Ready, in Kubernetes' words. Pure. A
 * transition time moves only when a status does. Conditions that others set are kept as they are.
 *
 * An agent that has just started does not know yet whether its runtime is well. It says nothing of Ready
 * until it does: what the node's last agent said stands, so a restart never makes a node NotReady.
 */
import { formatDuration } from '../kubernetes/duration.ts';
import { type NodeHealth, plegThresholdMs } from './node-health.ts';
import { type NodeCondition, wireTime } from './node-types.ts';

export interface ConditionInput {
  readonly health: NodeHealth;
  /** Names of `status.capacity`. */
  readonly capacityNames: readonly string[];
  readonly existing: readonly NodeCondition[];
  /** The machine was booted anew since `existing` was written, so it says nothing of now. */
  readonly rebooted: boolean;
  /** When a change that could not be written yet happened, by `type=status`. */
  readonly pending?: ReadonlyMap<string, string>;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** The order of the agent's own conditions; Ready is last, so that whoever sees it has seen the rest. */
export const ownConditions = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'] as const;

const requiredCapacity = ['cpu', 'memory', 'pods'];

type Verdict = Pick<NodeCondition, 'status' | 'reason' | 'message'>;

/** Foreign conditions as they are, then the agent's own. */
export function nodeConditions(input: ConditionInput): NodeCondition[] {
  const { existing } = input;
  const verdicts: readonly (readonly [string, Verdict | undefined])[] = [
    ...(['memory', 'disk', 'pids'] as const).map((resource) => pressureVerdict(resource, input)),
    ['Ready', readyVerdict(input)],
  ];
  const own = verdicts.map(([type, verdict]) => condition(type, verdict, input));
  const foreign = existing.filter(({ type }) => !isOwnCondition(type));
  return [...foreign, ...own.filter((item) => item !== undefined)];
}

export function isOwnCondition(type: string): boolean {
  return (ownConditions as readonly string[]).includes(type);
}

/** What keeps the node from being ready: `known` for certain, `pending` until a first look is through. */
export function readyProblems(
  health: NodeHealth,
  capacityNames: readonly string[],
): { known: string[]; pending: string[] } {
  const known: string[] = [];
  const pending: string[] = [];
  const onceStarted = health.isStarting ? pending : known;
  if (health.runtime === 'down') known.push('container runtime is down');
  if (health.runtime === 'unchecked' && health.runtimeNotReady === undefined) {
    onceStarted.push('container runtime status check may not have completed yet');
  }
  if (health.relistSilentMs !== undefined) {
    // Whole seconds: finer ones tell nothing more.
    const silent = formatDuration(Math.floor(health.relistSilentMs / 1000) * 1000);
    const threshold = formatDuration(plegThresholdMs);
    known.push(`PLEG is not healthy: pleg was last seen active ${silent} ago; threshold is ${threshold}`);
  }
  if (health.runtimeNotReady !== undefined) known.push(health.runtimeNotReady);
  if (health.networkNotReady !== undefined) known.push(health.networkNotReady);
  if (health.storageNotReady !== undefined) onceStarted.push(health.storageNotReady);
  if (health.shuttingDown) known.push('node is shutting down');
  const missing = requiredCapacity.filter((name) => !capacityNames.includes(name));
  if (missing.length > 0) known.push(`missing node capacity for resources: ${missing.join(', ')}`);
  return { known, pending };
}

const pressures = {
  memory: {
    type: 'MemoryPressure',
    high: says('True', 'KubeletHasInsufficientMemory', 'kubelet has insufficient memory available'),
    low: says('False', 'KubeletHasSufficientMemory', 'kubelet has sufficient memory available'),
  },
  disk: {
    type: 'DiskPressure',
    high: says('True', 'KubeletHasDiskPressure', 'kubelet has disk pressure'),
    low: says('False', 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'),
  },
  pids: {
    type: 'PIDPressure',
    high: says('True', 'KubeletHasInsufficientPID', 'kubelet has insufficient PID available'),
    low: says('False', 'KubeletHasSufficientPID', 'kubelet has sufficient PID available'),
  },
};

function pressureVerdict(
  resource: keyof typeof pressures,
  { health, existing, rebooted }: ConditionInput,
): [string, Verdict | undefined] {
  const { type, high, low } = pressures[resource];
  if (health.pressure !== undefined) return [type, health.pressure[resource] ? high : low];
  return [type, !rebooted && existing.some((item) => item.type === type) ? undefined : low];
}

/** Undefined: say nothing, what stands there is the best that is known. */
function readyVerdict({ health, capacityNames, existing, rebooted }: ConditionInput): Verdict | undefined {
  const { known, pending } = readyProblems(health, capacityNames);
  const hasWord = !rebooted && existing.some(({ type }) => type === 'Ready');
  if (known.length === 0 && pending.length > 0 && hasWord) return undefined;
  const problems = [...new Set([...known, ...pending])];
  if (problems.length > 0) {
    const message = problems.length === 1 ? problems[0]! : `[${problems.join(', ')}]`;
    return says('False', 'KubeletNotReady', message);
  }
  const warnings = health.warnings.map((warning) => `. WARNING: ${warning}`).join('');
  return says('True', 'KubeletReady', `kubelet is posting ready status${warnings}`);
}

function says(status: string, reason: string, message: string): Verdict {
  return { status, reason, message };
}

function condition(
  type: string,
  verdict: Verdict | undefined,
  { existing, pending, now }: ConditionInput,
): NodeCondition | undefined {
  const before = existing.find((item) => item.type === type);
  if (verdict === undefined) return before;
  const isSame = before?.status === verdict.status;
  const since = isSame ? before.lastTransitionTime : pending?.get(`${type}=${verdict.status}`);
  return {
    type,
    ...verdict,
    lastHeartbeatTime: wireTime(now),
    lastTransitionTime: since ?? wireTime(now),
  };
}
