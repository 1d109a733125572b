/** `kubelet --help`: every flag by group, in two columns that fit the terminal. */
import pc from 'picocolors';
import { FLAG_GROUPS, FLAGS, type FlagName } from '../config/flags/flags.ts';
import type { CommandResult, Terminal } from './command-result.ts';

const USAGE: readonly (readonly [string, string])[] = [
  ['kubelet [flags]', 'run the node agent'],
  ['kubelet config validate FILE [flags]', 'check a configuration file and exit'],
  ['kubelet doctor [-o json] [flags]', 'say what would stop this node, and what to do about it'],
  ['kubelet version', 'print versions'],
];

const INTRODUCTION =
  'The node agent of Kubernetes. It runs the pods that manifests on this machine or the API server ask for. ' +
  'Most settings belong into the file that --config names; a flag beats the file. ' +
  'In brackets: the default, and the field of the file that does the same.';

const NAME_COLUMN = 36;
const NARROWEST = 50;

export function commandHelp(terminal: Terminal): CommandResult {
  const width = Math.max(NARROWEST, Math.min(terminal.width, 120));
  const colors = pc.createColors(terminal.color);
  const lines = [...wrap(INTRODUCTION, width), '', colors.bold('Usage'), ''];
  for (const [usage, meaning] of USAGE) lines.push(...twoColumns(usage, meaning, width, (text) => text));
  for (const { title, names } of FLAG_GROUPS) {
    lines.push('', colors.bold(title), '');
    for (const name of [...names].sort()) {
      lines.push(
        ...twoColumns(
          nameOf(name),
          meaningOf(name),
          width,
          FLAGS[name].deprecated ? colors.dim : colors.cyan,
        ),
      );
    }
  }
  return { exitCode: 0, stdout: `${lines.join('\n')}\n`, stderr: '' };
}

function nameOf(name: FlagName): string {
  const { shorthand, type } = FLAGS[name];
  const value = type === 'bool' || type === 'version' ? '' : ` ${PLACEHOLDERS[type] ?? type}`;
  return `${shorthand ? `-${shorthand}, ` : ''}--${name}${value}`;
}

const PLACEHOLDERS: Partial<Record<string, string>> = {
  int: 'N',
  int32: 'N',
  int64: 'N',
  Level: 'N',
  string: 'TEXT',
  ip: 'IP',
  duration: 'TIME',
  quantity: 'SIZE',
  strings: 'A,B,…',
  mapStringString: 'A=B,…',
  mapStringBool: 'A=true,…',
  colonSeparatedMultimapStringString: 'A:B,…',
  '[]v1.Taint': 'KEY=VALUE:EFFECT,…',
  'reserved-memory': 'NODE:TYPE=SIZE,…',
};

function meaningOf(name: FlagName): string {
  const { summary, field, deprecated, default: byDefault } = FLAGS[name];
  const isEmpty =
    byDefault === '' || byDefault === false || byDefault === 'false' || isEmptyCollection(byDefault);
  const remarks = [
    !isEmpty && `default ${typeof byDefault === 'string' ? byDefault : JSON.stringify(byDefault)}`,
    field && `${deprecated ? 'better: ' : ''}${field}`,
    deprecated && !field && 'deprecated',
  ].filter((remark) => remark);
  return remarks.length > 0 ? `${summary} (${remarks.join('; ')})` : summary;
}

function isEmptyCollection(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

/** Long names get a line of their own. `paint` colours a text without changing its width. */
function twoColumns(left: string, right: string, width: number, paint: (text: string) => string): string[] {
  const indent = ' '.repeat(NAME_COLUMN);
  const [first = '', ...rest] = wrap(right, width - NAME_COLUMN);
  const fits = left.length + 4 <= NAME_COLUMN;
  const head = `  ${paint(left)}`;
  const lines = fits ? [head + ' '.repeat(NAME_COLUMN - 2 - left.length) + first] : [head, indent + first];
  return [...lines, ...rest.map((line) => indent + line)];
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
