/**
 * The rules for names: objects, labels, environment variables, ports. Each check returns what is wrong in
 * the API server's own words, ready to follow a field path; an empty list means the name is good.
 */
import { Buffer } from 'node:buffer';

const label1123 = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const subdomain1123 = `${label1123}(\\.${label1123})*`;
const label1035 = '[a-z]([-a-z0-9]*[a-z0-9])?';
const qualifiedPart = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const labelValue = `(${qualifiedPart})?`;
const envVar = '[-._a-zA-Z][-._a-zA-Z0-9]*';
const configKey = '[-._a-zA-Z0-9]+';

const whole = (pattern: string) => new RegExp(`^(?:${pattern})$`);
const matches = {
  label1123: whole(label1123),
  subdomain1123: whole(subdomain1123),
  label1035: whole(label1035),
  qualifiedPart: whole(qualifiedPart),
  labelValue: whole(labelValue),
  envVar: whole(envVar),
  configKey: whole(configKey),
};

const described = (rule: string, pattern: string, ...examples: string[]) =>
  `${rule} (e.g. ${examples.map((example) => `'${example}', `).join(' or ')}regex used for validation is '${pattern}')`;

const label1123Message = described(
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
  label1123,
  'my-name',
  '123-abc',
);
const subdomain1123Message = described(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  subdomain1123,
  'example.com',
);
const label1035Message = described(
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
  label1035,
  'my-name',
  'abc-123',
);
const qualifiedPartMessage = described(
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  qualifiedPart,
  'MyName',
  'my.name',
  '123-abc',
);
const labelValueMessage = described(
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  labelValue,
  'MyValue',
  'my_value',
  '12345',
);
const envVarMessage = described(
  "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit",
  envVar,
  'my.env-name',
  'MY_ENV.NAME',
  'MyEnvName1',
);
const relaxedEnvVarMessage =
  "a valid environment variable name must consist only of printable ASCII characters other than '='";
const configKeyMessage = described(
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
  configKey,
  'key.name',
  'KEY_NAME',
  'key-name',
);

const empty = 'must be non-empty';

const tooLong = (value: string, bytes: number) =>
  Buffer.byteLength(value) > bytes ? [`must be no more than ${bytes} bytes`] : [];

/** An RFC 1123 label of at most 63 bytes: container, volume and namespace names. */
export function checkDns1123Label(value: string): string[] {
  const problems = tooLong(value, 63);
  if (!matches.label1123.test(value)) {
    problems.push(matches.subdomain1123.test(value) ? 'must not contain dots' : label1123Message);
  }
  return problems;
}

/** RFC 1123 labels joined by dots, at most 253 bytes: pod, secret, node names. */
export function checkDns1123Subdomain(value: string): string[] {
  return [...tooLong(value, 253), ...(matches.subdomain1123.test(value) ? [] : [subdomain1123Message])];
}

/** A DNS-1035 label of at most 63 bytes: service names. */
export function checkDns1035Label(value: string): string[] {
  return [...tooLong(value, 63), ...(matches.label1035.test(value) ? [] : [label1035Message])];
}

/** `[subdomain/]name`: label and annotation keys, resource names, condition types. */
export function checkQualifiedName(value: string): string[] {
  const problems: string[] = [];
  const parts = value.split('/');
  if (parts.length > 2) {
    return [
      `a qualified name ${qualifiedPartMessage} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const name = parts.at(-1) ?? '';
  const prefix = parts.length === 2 ? parts[0] : undefined;
  if (prefix === '') problems.push(`prefix part ${empty}`);
  else if (prefix !== undefined)
    problems.push(...checkDns1123Subdomain(prefix).map((m) => `prefix part ${m}`));
  if (name === '') problems.push(`name part ${empty}`);
  problems.push(...tooLong(name, 63).map((message) => `name part ${message}`));
  if (!matches.qualifiedPart.test(name)) problems.push(`name part ${qualifiedPartMessage}`);
  return problems;
}

/** The value of a label: empty, or a qualified name's part of at most 63 bytes. */
export function checkLabelValue(value: string): string[] {
  return [...tooLong(value, 63), ...(matches.labelValue.test(value) ? [] : [labelValueMessage])];
}

/** Environment variables as Kubernetes 1.36 takes them: any printable ASCII but `=`. */
export function checkEnvVarName(value: string): string[] {
  if (value === '') return [`environment variable name ${empty}`];
  return /^[ -<>-~]+$/.test(value) ? [] : [relaxedEnvVarMessage];
}

/** Environment variables by the older, narrower rule. */
export function checkStrictEnvVarName(value: string): string[] {
  return [...(matches.envVar.test(value) ? [] : [envVarMessage]), ...reservedPathName(value)];
}

/** A key of a config map, a secret, or a file projected from one. */
export function checkConfigMapKey(value: string): string[] {
  return [
    ...tooLong(value, 253),
    ...(matches.configKey.test(value) ? [] : [configKeyMessage]),
    ...reservedPathName(value),
  ];
}

/** Names that would leave their directory, or look as if. */
function reservedPathName(value: string): string[] {
  if (value === '.') return ["must not be '.'"];
  if (value === '..') return ["must not be '..'"];
  return value.startsWith('..') ? ["must not start with '..'"] : [];
}

/** An IANA service name of at most 15 bytes: the name of a container port. */
export function checkPortName(value: string): string[] {
  const problems = tooLong(value, 15);
  if (!/^[-a-z0-9]+$/.test(value)) {
    problems.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)');
  }
  if (!/[a-z]/.test(value)) problems.push('must contain at least one letter (a-z)');
  if (value.includes('--')) problems.push('must not contain consecutive hyphens');
  if (value.startsWith('-') || value.endsWith('-')) problems.push('must not begin or end with a hyphen');
  return problems;
}

/** A port number: 1 to 65535. */
export function checkPortNumber(value: number): string[] {
  return Number.isInteger(value) && value >= 1 && value <= 65_535
    ? []
    : ['must be between 1 and 65535, inclusive'];
}

/** What identifies a pod in one node's eyes whatever its uid: `name_namespace`. */
export function podFullName(name: string, namespace: string): string {
  return `${name}_${namespace}`;
}

/** Takes a {@link podFullName} apart; `undefined` when it is none. */
export function parsePodFullName(fullName: string): { name: string; namespace: string } | undefined {
  const [name, namespace, ...rest] = fullName.split('_');
  return name && namespace && rest.length === 0 ? { name, namespace } : undefined;
}
