/**
 * The last words of a container: what it wrote to its termination message file, or the end of its log when
 * it failed without a word and its policy allows that.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { openInstance, openRotated } from '../../logs/instance-files.ts';
import type { LogFile } from '../../logs/log-file.ts';

/** Bytes taken from the file. */
const maxFromFile = 4096;
/** Bytes and lines taken from the log. */
const maxFromLog = 2048;
const maxLogLines = 80;
/** Bytes all containers of a pod may have together in its status. */
const maxForPod = 12_288;
/** How much of a log's end is looked at; runtimes split lines at 16 KiB. */
const logTail = 256 * 1024;

/** Where the last words of a container may be found. */
export interface TerminationMessageSource {
  /** The file on the node; absent when the container has no `terminationMessagePath`. */
  readonly file?: string;
  /** `terminationMessagePolicy`. */
  readonly policy: string;
  readonly exitCode: number;
  /** The container's CRI log. */
  readonly log?: string;
}

/**
 * The message of an ended container, empty when it left none. Never throws: what cannot be read is told in
 * the message.
 */
export async function readTerminationMessage(source: TerminationMessageSource): Promise<string> {
  if (source.file !== undefined) {
    const message = await attempt(`Error on reading termination log ${source.file}`, async () =>
      text(await readTail(source.file!, maxFromFile)),
    );
    if (message !== '') return message;
  }
  const fallsBack = source.policy === 'FallbackToLogsOnError' && source.exitCode !== 0;
  if (!fallsBack || source.log === undefined) return '';
  return await attempt('Error on reading termination message from logs', async () =>
    logEnd(await readLogTail(source.log!)),
  );
}

/** Cuts a message to its share of what a pod's status may carry; `containers` counts init containers too. */
export function cutTerminationMessage(message: string, containers: number): string {
  const share = Math.floor(maxForPod / Math.max(1, containers));
  const bytes = Buffer.from(message);
  return bytes.length <= share ? message : text({ bytes: bytes.subarray(0, share), cut: false });
}

/** The last lines of a CRI log without times and tags, at most 80 of the file and 2048 bytes of content. */
function logEnd(tail: Tail): string {
  const complete = tail.cut ? tail.bytes.subarray(tail.bytes.indexOf(0x0a) + 1) : tail.bytes;
  const lines = splitLines(complete).slice(-maxLogLines);
  const content = Buffer.concat(lines.map(contentOf));
  return text({ bytes: content.subarray(-maxFromLog), cut: content.length > maxFromLog });
}

/** Lines with their line breaks. */
function splitLines(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < bytes.length; ) {
    const end = bytes.indexOf(0x0a, start);
    const next = end < 0 ? bytes.length : end + 1;
    lines.push(bytes.subarray(start, next));
    start = next;
  }
  return lines;
}

/** `<time> <stream> <tags> <content>`: the content, with its line break unless the line is a part of one. */
function contentOf(line: Buffer): Buffer {
  const head = /^\S+ (?:stdout|stderr) (\S+) /.exec(line.subarray(0, 128).toString('latin1'));
  if (!head) return line;
  const isPart = head[1]!.split(':')[0] === 'P';
  const end = isPart && line.at(-1) === 0x0a ? line.length - 1 : line.length;
  return line.subarray(head[0].length, end);
}

interface Tail {
  readonly bytes: Buffer;
  /** There is more in front of it. */
  readonly cut: boolean;
}

async function readTail(path: string, max: number): Promise<Tail> {
  // Non-blocking, in case something put a pipe there.
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    return await tailOf(file, max);
  } finally {
    await file.close();
  }
}

async function tailOf(file: FileHandle, max: number): Promise<Tail> {
  const facts = await file.stat();
  if (!facts.isFile()) throw new Error('it is no regular file');
  const start = Math.max(0, facts.size - max);
  const buffer = Buffer.alloc(facts.size - start);
  let length = 0;
  while (length < buffer.length) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, start + length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return { bytes: buffer.subarray(0, length), cut: start > 0 };
}

/**
 * The end of a container's log over its rotated parts: right after a rotation the live one says little.
 *
 * Differs from the kubelet, which looks into the live one only.
 */
async function readLogTail(path: string): Promise<Tail> {
  const { live, rotated } = await openInstance(path);
  let tail: Tail = live ? await tailOfLog(live) : { bytes: Buffer.alloc(0), cut: false };
  for (const part of rotated.toReversed()) {
    if (tail.cut || splitLines(tail.bytes).length >= maxLogLines) break;
    const file = await openRotated(part);
    if (!file) continue;
    const { bytes, cut } = await tailOfLog(file);
    tail = { bytes: Buffer.concat([bytes, tail.bytes]), cut };
  }
  return tail;
}

/** At most {@link logTail} bytes; closes the file. */
async function tailOfLog(file: LogFile): Promise<Tail> {
  try {
    if (!file.isCompressed) {
      const size = await file.size();
      const start = Math.max(0, size - logTail);
      return { bytes: await file.read(Buffer.alloc(size - start), start), cut: start > 0 };
    }
    let bytes = Buffer.alloc(0);
    let cut = false;
    for await (const block of file.blocks()) {
      bytes = Buffer.concat([bytes, block]);
      cut ||= bytes.length > logTail;
      bytes = bytes.subarray(-logTail);
    }
    return { bytes, cut };
  } finally {
    await file.close();
  }
}

/** UTF-8 without the halves of characters that were cut through at either end. */
function text({ bytes, cut }: Tail): string {
  const firstWhole = bytes.subarray(0, 4).findIndex((byte) => (byte & 0xc0) !== 0x80);
  const start = cut ? Math.max(0, firstWhole) : 0;
  const whole = new TextDecoder('utf-8', { ignoreBOM: true });
  // In stream mode an unfinished character at the end is kept back instead of shown as damage.
  return whole.decode(bytes.subarray(start), { stream: true });
}

async function attempt(what: string, read: () => Promise<string>): Promise<string> {
  try {
    return await read();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    return `${what}: ${(error as Error).message}`;
  }
}
