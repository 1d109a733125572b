/** Rules on single values, worded once: the same words stand in error messages and in the reference page. */
import { isIP } from 'node:net';
import { parseDurationNanos } from '../kubernetes/duration.ts';
import { checkDns1123Subdomain } from '../kubernetes/names.ts';
import { tryParseQuantity } from '../kubernetes/quantity.ts';
import { parseCpuSet } from './cpu-set.ts';
import type { ValueCheck } from './field.ts';

export function between(low: number, high: number): ValueCheck<number> {
  return { rule: `${low} to ${high}`, accepts: (value) => value >= low && value <= high };
}

export function atLeast(low: number): ValueCheck<number> {
  return { rule: `${low} or more`, accepts: (value) => value >= low };
}

export const aboveZeroUpToOne: ValueCheck<number> = {
  rule: 'above 0, at most 1',
  accepts: (value) => value > 0 && value <= 1,
};

/** `value` is a Go duration, or nanoseconds where the field allows a number. */
const nanos = (value: string | number) =>
  typeof value === 'number' ? BigInt(value) : parseDurationNanos(value);

export function durationBetween(low: string, high: string): ValueCheck<string> {
  return {
    rule: `${low} to ${high}`,
    accepts: (value) => nanos(value) >= nanos(low) && nanos(value) <= nanos(high),
  };
}

export function durationAtLeast(low: string): ValueCheck<string> {
  return { rule: `${low} or longer`, accepts: (value) => nanos(value) >= nanos(low) };
}

export const notNegativeDuration = durationAtLeast('0s');

export const positiveDuration: ValueCheck<string | number> = {
  rule: 'longer than 0s',
  accepts: (value) => nanos(value) > 0n,
};

export const zeroOrAtLeastOneSecond: ValueCheck<string> = {
  rule: '0s, or 1s and longer',
  accepts: (value) => nanos(value) === 0n || nanos(value) >= nanos('1s'),
};

export const ipAddress: ValueCheck<string> = { rule: 'an IP address', accepts: (value) => isIP(value) !== 0 };

export const ipAddresses: ValueCheck<readonly string[]> = {
  rule: 'a list of IP addresses',
  accepts: (value) => value.every((item) => isIP(item) !== 0),
};

function isCidr(value: string): boolean {
  const [address = '', bits = '', ...rest] = value.split('/');
  const family = isIP(address);
  return (
    rest.length === 0 && family !== 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128)
  );
}

export const cidrs: ValueCheck<string> = {
  rule: 'empty, a network range such as 10.1.0.0/16, or two of them, IPv4 and IPv6, with a comma',
  accepts: (value) => {
    if (value === '') return true;
    const ranges = value.split(',');
    return (
      ranges.every(isCidr) &&
      (ranges.length === 1 || (ranges.length === 2 && ranges[0]!.includes(':') !== ranges[1]!.includes(':')))
    );
  },
};

export const dnsDomain: ValueCheck<string> = {
  rule: 'empty or a DNS domain',
  accepts: (value) => value === '' || checkDns1123Subdomain(value.replace(/\.$/, '')).length === 0,
};

export const notEmpty: ValueCheck<string> = { rule: 'not empty', accepts: (value) => value !== '' };

export const webUrl: ValueCheck<string> = {
  rule: 'empty or an http(s) URL',
  accepts: (value) => value === '' || (URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)),
};

export const absoluteCgroup: ValueCheck<string> = {
  rule: 'empty or an absolute cgroup name',
  accepts: (value) => value === '' || value.startsWith('/'),
};

export const podLogsDirectory: ValueCheck<string> = {
  rule: 'an absolute, clean path of ASCII characters',
  accepts: (value) => value.startsWith('/') && isCleanPath(value) && /^[\x20-\x7e]+$/.test(value),
};

function isCleanPath(path: string): boolean {
  return (
    path === '/' ||
    path
      .slice(1)
      .split('/')
      .every((part) => part !== '' && part !== '.' && part !== '..')
  );
}

/** Zero would rotate without end; a negative size turns rotation off. */
export const rotationSize: ValueCheck<string> = {
  rule: 'a quantity other than 0',
  accepts: (value) => (tryParseQuantity(value)?.nano ?? 0n) !== 0n,
};

export const cpuSet: ValueCheck<string> = {
  rule: 'empty or a CPU list such as 0-3,8',
  accepts: (value) => parseCpuSet(value) !== undefined,
};

export const collectorEndpoint: ValueCheck<string> = {
  rule: 'host:port, or a target with scheme dns, unix or unix-abstract',
  accepts: (value) => {
    const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):(?!\d+$)/.exec(value)?.[1];
    return (
      value !== '' &&
      (scheme === undefined || ['dns', 'unix', 'unix-abstract'].includes(scheme.toLowerCase()))
    );
  },
};

export const idsPerPod: ValueCheck<number> = {
  rule: 'a multiple of 65536, at least 65536, below 2^32',
  accepts: (value) => value >= 65536 && value < 2 ** 32 && value % 65536 === 0,
};

export const sysctlPatterns: ValueCheck<readonly string[]> = {
  rule: 'sysctl names or patterns ending in *, of what pods have to themselves: kernel.shm*, kernel.msg*, kernel.sem, fs.mqueue.*, net.*',
  accepts: (value) =>
    value.every(
      (item) =>
        /^[a-z0-9]([-_a-z0-9]*[a-z0-9])?([./][a-z0-9]([-_a-z0-9]*[a-z0-9])?)*([./]\*|\*)?$/.test(item) &&
        /^(?:net[./]|fs[./]mqueue[./]|kernel[./](?:shm|msg)|kernel[./]sem\*?$)/.test(item),
    ),
};
