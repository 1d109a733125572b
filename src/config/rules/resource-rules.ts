/** Reservations, their enforcement, and the CPU, memory and topology policies. */
import {
  addQuantities,
  compareQuantities,
  formatQuantity,
  tryParseQuantity,
  zeroQuantity,
} from '../../kubernetes/quantity.ts';
import type { GateName } from '../feature-gates.ts';
import type { Rule } from './rule.ts';

const RESERVABLE = ['cpu', 'memory', 'ephemeral-storage', 'pid'];

const reservations: Rule = (configuration, report) => {
  for (const field of ['kubeReserved', 'systemReserved'] as const) {
    for (const [resource, amount] of Object.entries(configuration[field] ?? {})) {
      const at = [field, resource];
      const quantity = tryParseQuantity(amount);
      if (!RESERVABLE.includes(resource))
        report(at, `cannot be reserved; known are ${RESERVABLE.join(', ')}`);
      else if (!quantity) report(at, `must be a quantity, not ${JSON.stringify(amount)}`);
      else if (quantity.nano < 0n) report(at, `must not be negative, but is ${amount}`);
    }
  }
};

const LEVELS = [
  'none',
  'pods',
  'system-reserved',
  'system-reserved-compressible',
  'kube-reserved',
  'kube-reserved-compressible',
];

const enforcement: Rule = (configuration, report) => {
  const field = 'enforceNodeAllocatable';
  const levels = configuration[field];
  for (const [index, level] of levels.entries()) {
    if (!LEVELS.includes(level))
      report([field, index], `unknown level ${JSON.stringify(level)}; known are ${LEVELS.join(', ')}`);
    else if (levels.indexOf(level) < index) report([field, index], `${level} is listed twice`);
  }
  if (levels.includes('none') && levels.length > 1) report([field], 'none must stand alone');
  for (const [owner, cgroup] of [
    ['system', 'systemReservedCgroup'],
    ['kube', 'kubeReservedCgroup'],
  ] as const) {
    const plain = levels.includes(`${owner}-reserved`);
    const compressible = levels.includes(`${owner}-reserved-compressible`);
    if (plain && compressible)
      report([field], `${owner}-reserved and ${owner}-reserved-compressible exclude each other`);
    if ((plain || compressible) && configuration[cgroup] === '') {
      report([field], `enforcing ${owner}-reserved needs ${cgroup}`);
    }
  }
  if (!configuration.cgroupsPerQOS && levels.some((level) => level !== 'none')) {
    report(['cgroupsPerQOS'], 'false needs enforceNodeAllocatable: [none]');
  }
};

const cgroupNames: Rule = (configuration, report) => {
  if (configuration.systemCgroups !== '' && configuration.cgroupRoot === '') {
    report(['systemCgroups'], 'needs cgroupRoot');
  }
  if (configuration.reservedSystemCPUs === '') return;
  for (const field of ['systemReservedCgroup', 'kubeReservedCgroup'] as const) {
    if (configuration[field] !== '') report([field], 'cannot be used together with reservedSystemCPUs');
  }
};

/** CPU manager options: the gate each needs, and which ones exclude each other. */
const CPU_OPTIONS: Readonly<Record<string, { gate?: GateName; excludes?: readonly string[] }>> = {
  'full-pcpus-only': {},
  'strict-cpu-reservation': {},
  'distribute-cpus-across-numa': { gate: 'CPUManagerPolicyBetaOptions' },
  'align-by-socket': { gate: 'CPUManagerPolicyAlphaOptions' },
  'distribute-cpus-across-cores': {
    gate: 'CPUManagerPolicyAlphaOptions',
    excludes: ['full-pcpus-only', 'distribute-cpus-across-numa'],
  },
  'prefer-align-cpus-by-uncorecache': {
    excludes: ['distribute-cpus-across-numa', 'distribute-cpus-across-cores'],
  },
};

const cpuManager: Rule = (configuration, report, gates) => {
  const field = 'cpuManagerPolicyOptions';
  const options = configuration[field] ?? {};
  const isOn = (name: string) => options[name] === 'true';
  if (Object.keys(options).length > 0 && configuration.cpuManagerPolicy !== 'static') {
    report([field], 'needs cpuManagerPolicy: static');
  }
  for (const [name, value] of Object.entries(options)) {
    const option = Object.hasOwn(CPU_OPTIONS, name) ? CPU_OPTIONS[name] : undefined;
    if (!option) report([field, name], `unknown option; known are ${Object.keys(CPU_OPTIONS).join(', ')}`);
    else if (value !== 'true' && value !== 'false') report([field, name], 'must be "true" or "false"');
    else if (option.gate && !gates.enabled(option.gate))
      report([field, name], `needs the feature gate ${option.gate}`);
    for (const other of option?.excludes ?? []) {
      if (isOn(name) && isOn(other)) report([field, name], `cannot be used together with ${other}`);
    }
  }
  if (isOn('align-by-socket') && configuration.topologyManagerPolicy === 'single-numa-node') {
    report([field, 'align-by-socket'], 'cannot be used with topologyManagerPolicy: single-numa-node');
  }
};

const topologyManager: Rule = (configuration, report) => {
  const field = 'topologyManagerPolicyOptions';
  for (const [name, value] of Object.entries(configuration[field] ?? {})) {
    if (name === 'prefer-closest-numa-nodes') {
      if (value !== 'true' && value !== 'false') report([field, name], 'must be "true" or "false"');
    } else if (name === 'max-allowable-numa-nodes') {
      if (!/^\d{1,9}$/.test(value) || Number(value) < 8)
        report([field, name], 'must be a whole number from 8');
    } else
      report([field, name], 'unknown option; known are prefer-closest-numa-nodes, max-allowable-numa-nodes');
  }
};

const reservedMemory: Rule = (configuration, report) => {
  const field = 'reservedMemory';
  const seen = new Set<string>();
  let total = zeroQuantity;
  for (const [index, { numaNode, limits }] of (configuration[field] ?? []).entries()) {
    if (numaNode < 0) report([field, index, 'numaNode'], 'must not be negative');
    for (const [type, amount] of Object.entries(limits)) {
      const at = [field, index, 'limits', type];
      const quantity = tryParseQuantity(amount);
      if (type !== 'memory' && !type.startsWith('hugepages-'))
        report(at, 'must be memory or hugepages-<size>');
      else if (!quantity || quantity.nano <= 0n)
        report(at, `must be a quantity above 0, not ${JSON.stringify(amount)}`);
      else if (type === 'memory') total = addQuantities(total, quantity);
      if (seen.has(`${numaNode} ${type}`)) report(at, `is given twice for NUMA node ${numaNode}`);
      seen.add(`${numaNode} ${type}`);
    }
  }
  if (configuration.memoryManagerPolicy !== 'Static') return;
  if (configuration[field] === undefined) {
    report(['memoryManagerPolicy'], 'Static needs reservedMemory');
    return;
  }
  const hard = configuration.evictionHard['memory.available'] ?? '0';
  // A percentage is measured against the machine at start-up.
  const parts = [
    configuration.kubeReserved?.['memory'] ?? '0',
    configuration.systemReserved?.['memory'] ?? '0',
    hard,
  ].map(tryParseQuantity);
  if (parts.includes(undefined)) return;
  const wanted = parts.reduce((sum, part) => addQuantities(sum!, part!), zeroQuantity)!;
  if (compareQuantities(wanted, total) !== 0) {
    report(
      [field],
      `memory adds up to ${formatQuantity(total)}, but kubeReserved + systemReserved + hard eviction is ${formatQuantity(wanted)}`,
    );
  }
};

const qosReserved: Rule = (configuration, report) => {
  for (const [resource, share] of Object.entries(configuration.qosReserved ?? {})) {
    const percent = /^(\d{1,3})%$/.exec(share);
    if (resource !== 'memory') report(['qosReserved', resource], 'only memory can be reserved');
    else if (!percent || Number(percent[1]) > 100) report(['qosReserved', resource], 'must be 0% to 100%');
  }
};

/** Rules of reservations and resource managers. */
export const resourceRules: readonly Rule[] = [
  reservations,
  enforcement,
  cgroupNames,
  cpuManager,
  topologyManager,
  reservedMemory,
  qosReserved,
];
