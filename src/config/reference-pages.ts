/**
 * The reference pages, made from the tables the program itself works with. `scripts/generate-reference.ts`
 * writes them; a test holds the written pages equal to what this returns.
 */
import type { JsonValue } from '../kubernetes/yaml.ts';
import { PENDING_FIELDS, PENDING_FLAGS, PENDING_GATES } from './effects.ts';
import { FEATURE_GATES, GATE_NAMES } from './feature-gates.ts';
import type { Field } from './field.ts';
import { FLAG_GROUPS, FLAGS, type FlagName } from './flags/flags.ts';
import { FIELD_GROUPS, listFields } from './kubelet-configuration.ts';

const MADE_BY = '<!-- Made by scripts/generate-reference.ts. Do not edit. -->';

/** `docs/reference/flags.md` */
export function flagsPage(): string {
  const lines = [
    '# Flags',
    '',
    MADE_BY,
    '',
    'In names `_` and `-` are the same. A flag beats the configuration file. Flags with a field are deprecated',
    'unless marked "kept": the field in the `--config` file is the better place. "Default" is what holds without',
    '`--config`. Flags marked ○ are read and checked, and have no effect yet; the agent names the ones you set at',
    'start.',
  ];
  const pending = new Set<string>(PENDING_FLAGS);
  const pendingFields = new Set<string>(PENDING_FIELDS);
  for (const { title, names } of FLAG_GROUPS) {
    lines.push('', `## ${title}`, '', '| flag | type | default | field | meaning |', '|---|---|---|---|---|');
    for (const name of [...names].sort()) lines.push(flagRow(name, pending, pendingFields));
  }
  return `${lines.join('\n')}\n`;
}

function flagRow(
  name: FlagName,
  pendingFlags: ReadonlySet<string>,
  pendingFields: ReadonlySet<string>,
): string {
  const { field, shorthand, type, summary, deprecated, default: byDefault } = FLAGS[name];
  const isPending = field === undefined ? pendingFlags.has(name) : pendingFields.has(field);
  const place = field ? `\`${field}\`${deprecated ? '' : ' (kept)'}` : deprecated ? 'deprecated' : '';
  const names = `\`--${name}\`${shorthand && shorthand !== name ? `, \`-${shorthand}\`` : ''}`;
  return `| ${isPending ? '○ ' : ''}${names} | ${cell(type)} | ${code(byDefault)} | ${place} | ${cell(summary)} |`;
}

/** `docs/reference/configuration.md` */
export function configurationPage(): string {
  const lines = [
    '# KubeletConfiguration',
    '',
    MADE_BY,
    '',
    '`apiVersion: kubelet.config.k8s.io/v1beta1`, `kind: KubeletConfiguration`, YAML or JSON. `kubelet config',
    'validate FILE` checks a file. Fields marked ○ are read and checked, and have no effect yet. In fields not',
    'marked "zero counts" a zero or empty value means "not given".',
  ];
  const all = listFields();
  const pending = new Set<string>(PENDING_FIELDS);
  for (const { title, fields } of FIELD_GROUPS) {
    lines.push(
      '',
      `## ${title}`,
      '',
      '| field | type | default | accepted | meaning |',
      '|---|---|---|---|---|',
    );
    for (const name of Object.keys(fields).sort()) {
      for (const [path, described] of all) {
        if (path === name || path.startsWith(`${name}.`) || path.startsWith(`${name}[]`)) {
          lines.push(fieldRow(path, described, pending.has(path)));
        }
      }
    }
  }
  lines.push(
    '',
    '## Feature gates',
    '',
    'Unknown gates, and locked gates set to the other value, are refused. Gates marked ○ change nothing yet; the',
    'agent names the ones you switched at start.',
    '',
  );
  lines.push('| gate | default | stage |', '|---|---|---|');
  for (const name of GATE_NAMES) {
    const { stage, locked, default: byDefault } = FEATURE_GATES[name];
    const mark = PENDING_GATES.includes(name) ? '○ ' : '';
    lines.push(`| ${mark}\`${name}\` | ${byDefault} | ${stage}${locked ? ', locked' : ''} |`);
  }
  return `${lines.join('\n')}\n`;
}

function fieldRow(path: string, described: Field, isPending: boolean): string {
  const { type, summary, gate, check, pointer, members } = described;
  const accepted = [check?.rule, gate && `needs gate ${gate}`, pointer && !members && 'zero counts'].filter(
    (part) => part,
  );
  const shown = members ? '' : code(described.default);
  return `| ${isPending ? '○ ' : ''}\`${path}\` | ${cell(type)} | ${shown} | ${cell(accepted.join('; '))} | ${cell(summary)} |`;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('*', '\\*').replaceAll('<', '&lt;');
}

/** A default as code; nothing for "none". */
function code(value: JsonValue | undefined): string {
  if (value === undefined || value === '') return '';
  if (typeof value === 'object' && value !== null && Object.keys(value).length === 0) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return `\`${text}\``;
}
