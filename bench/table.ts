/** The results as one Markdown table that is as readable at a terminal. Pure. */
import { median, percentile } from './measure.ts';
import type { Results } from './results.ts';
import { type Row, type RowId, rows } from './targets.ts';

/** From so many samples on a 90th percentile says something. */
const enoughForP90 = 10;

const head = ['work', 'floor', 'agent', '× floor', 'Go kubelet 1.36.2', 'target', 'met'];

/** Rows without a measurement are left out. */
export function renderTable(results: Results): string {
  const body = (Object.entries(rows) as [RowId, Row][]).flatMap(([id, row]) => {
    const { floor, agent } = results.of(id);
    return agent.length === 0 ? [] : [cells(row, floor, agent)];
  });
  const widths = head.map((title, column) =>
    Math.max(title.length, ...body.map((line) => (line[column] ?? '').length)),
  );
  const line = (texts: readonly string[]): string =>
    `| ${texts.map((text, column) => text.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...body.map(line)].join('\n');
}

function cells(row: Row, floor: readonly number[], agent: readonly number[]): string[] {
  const withP90 = agent.length >= enoughForP90;
  const ratio = median(agent) / median(floor);
  const ratioP90 = percentile(agent, 0.9) / percentile(floor, 0.9);
  return [
    row.work,
    floor.length === 0 ? '' : amount(row, floor, withP90),
    amount(row, agent, withP90),
    floor.length === 0 ? '' : `${ratio.toFixed(2)}${withP90 ? ` (${ratioP90.toFixed(2)})` : ''}`,
    goText(row),
    targetText(row, withP90),
    verdict(row, { value: median(agent), ratio, ratioP90: withP90 ? ratioP90 : 0 }),
  ];
}

/** The median, and in brackets the 90th percentile. */
function amount(row: Row, samples: readonly number[], withP90: boolean): string {
  const p90 = withP90 ? ` (${figure(row, percentile(samples, 0.9))})` : '';
  return `${figure(row, median(samples))}${unit(row)}${p90}`;
}

function figure({ unit: of }: Row, value: number): string {
  if (of === '') return String(value);
  if (of === 'MiB' || of === 'MB/s') return value.toFixed(0);
  if (of === '%') return value.toFixed(2);
  return value >= 3 ? value.toFixed(2) : value.toFixed(value < 0.1 ? 4 : 3);
}

function unit({ unit: of }: Row): string {
  return of === '' ? '' : ` ${of}`;
}

function range([low, high]: readonly [number, number]): string {
  return low === high ? String(low) : `${low}–${high}`;
}

function goText(row: Row): string {
  if (row.go === undefined) return '';
  const { typical, p90, timesFloor } = row.go;
  const brackets = p90 === undefined ? '' : ` (${range(p90)})`;
  const times = timesFloor === undefined ? '' : `, ${range(timesFloor)} × its floor`;
  return `${range(typical)}${unit(row)}${brackets}${times}`;
}

function targetText(row: Row, withP90: boolean): string {
  const { target } = row;
  if (target === undefined) return '';
  if ('most' in target) return `≤ ${target.most}${unit(row)}`;
  const p90 = withP90 && target.p90TimesFloor !== undefined ? ` (${target.p90TimesFloor})` : '';
  return `≤ ${target.timesFloor}${p90} × floor`;
}

function verdict(
  { target }: Row,
  { value, ratio, ratioP90 }: { value: number; ratio: number; ratioP90: number },
): string {
  if (target === undefined) return '';
  const met =
    'most' in target
      ? value <= target.most
      : ratio <= target.timesFloor && ratioP90 <= (target.p90TimesFloor ?? Number.POSITIVE_INFINITY);
  return met ? 'yes' : 'no';
}
