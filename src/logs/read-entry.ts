/** Reads one line of a log, whoever wrote it: lines of CRI begin with a time, those of Docker with a brace. */
import { readDockerEntry } from './docker-log-entry.ts';
import { type LogEntry, readCriEntry } from './log-entry.ts';

const brace = 0x7b;

/** Reads the entry in `[start, end)`, with or without its line break, into `entry`; false when it is none. */
export function readEntry(block: Uint8Array, start: number, end: number, entry: LogEntry): boolean {
  return block[start] === brace
    ? readDockerEntry(block, start, end, entry)
    : readCriEntry(block, start, end, entry);
}
