/**
 * Holds the house in order: lower floors never import higher ones, rooms on one floor do not import each
 * other, nothing in `src/` imports tests or development tools, and no files import each other in a circle,
 * for a type neither. Prints every offence; exits 1 on any.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { importCircles } from './checks/import-circles.ts';

/** From the ground up. `main.ts` and `index.ts` stand on the roof and may import anything. */
const floors: readonly (readonly string[])[] = [
  ['concurrency', 'kubernetes', 'linux', 'telemetry'],
  ['config', 'client'],
  [
    'sources',
    'runtime',
    'objects',
    'volumes',
    'resources',
    'probes',
    'node',
    'stats',
    'logs',
    'credentials',
    'server',
  ],
  ['pods'],
  ['agent'],
  ['cli'],
];

/** Doors between rooms on one floor, each with its reason. */
const doors: Readonly<Record<string, string>> = {
  'telemetry → concurrency': 'log, metrics and events take the clock',
  'linux → concurrency': 'waits and limits',
};

const root = join(import.meta.dirname, '..');
const source = join(root, 'src');
const floorOf = new Map(floors.flatMap((rooms, floor) => rooms.map((room) => [room, floor] as const)));
const importPattern = /(?:from|import|require)\s*\(?\s*'(\.[^']+)'/g;

const offences: string[] = [];
const usedDoors = new Set<string>();
const imports = new Map<string, string[]>();

for (const file of globSync('**/*.ts', { cwd: source }).sort()) {
  const room = file.includes('/') ? file.slice(0, file.indexOf('/')) : undefined;
  if (room === undefined) continue;
  const floor = floorOf.get(room);
  if (floor === undefined) {
    offences.push(`src/${file}: room "${room}" stands on no floor; name it in scripts/check-rooms.ts`);
    continue;
  }
  const imported: string[] = [];
  imports.set(file, imported);
  for (const [, specifier] of readFileSync(join(source, file), 'utf8').matchAll(importPattern)) {
    const target = relative(source, join(source, dirname(file), specifier!));
    imported.push(target);
    const isTest = file.endsWith('.test.ts') || file.includes('/fixtures/');
    if (target.startsWith('..')) {
      if (!isTest) offences.push(`src/${file} imports ${specifier}: src/ must stand without the rest`);
      continue;
    }
    const other = target.includes('/') ? target.slice(0, target.indexOf('/')) : undefined;
    if (other === room) continue;
    const otherFloor = other === undefined ? floors.length : floorOf.get(other);
    const door = `${room} → ${other ?? 'roof'}`;
    if (otherFloor !== undefined && otherFloor < floor) continue;
    if (doors[door] !== undefined) usedDoors.add(door);
    else offences.push(`src/${file} imports ${specifier}: "${room}" may not reach "${other ?? 'the roof'}"`);
  }
}
for (const door of Object.keys(doors)) {
  if (!usedDoors.has(door)) offences.push(`scripts/check-rooms.ts: nobody uses the door "${door}"; close it`);
}

for (const circle of importCircles(imports)) {
  offences.push(`files import each other in a circle: src/${[...circle, circle[0]].join(' → src/')}`);
}

for (const offence of offences) console.error(offence);
console.log(offences.length === 0 ? 'rooms: in order' : `rooms: ${offences.length} offences`);
process.exitCode = offences.length === 0 ? 0 : 1;
