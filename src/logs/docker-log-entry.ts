/**
 * One line of a log that Docker writes (`json-file`, by way of cri-dockerd):
 * `{"log":"<content>","stream":"stdout","time":"<RFC 3339>"}`, in this order, perhaps with `attrs` before the
 * time. A line of the container that ends has `\n` as the end of its content; one that goes on has not.
 */
import { type LogEntry, streams } from './log-entry.ts';

const lineBreak = 0x0a;
const quote = 0x22;
const backslash = 0x5c;
const begin = Buffer.from('{"log":"');
const stdout = Buffer.from(',"stream":"stdout"');
const stderr = Buffer.from(',"stream":"stderr"');
const time = Buffer.from(',"time":"');

/** As `readCriEntry`. */
export function readDockerEntry(block: Uint8Array, start: number, lineEnd: number, entry: LogEntry): boolean {
  const end = block[lineEnd - 1] === lineBreak ? lineEnd - 1 : lineEnd;
  const bytes = Buffer.from(block.buffer, block.byteOffset, block.byteLength);
  if (!isAt(bytes, start, end, begin)) return false;
  const contentStart = start + begin.length;
  const contentEnd = stringEnd(bytes, contentStart, end);
  if (contentEnd === undefined) return false;
  const isStderr = isAt(bytes, contentEnd + 1, end, stderr);
  if (!isStderr && !isAt(bytes, contentEnd + 1, end, stdout)) return false;
  const timeStart = bytes.subarray(contentEnd, end).lastIndexOf(time) + contentEnd + time.length;
  const timeEnd = end - 2;
  if (timeStart < contentEnd + time.length || timeStart >= timeEnd) return false;
  if (bytes[timeEnd] !== quote || bytes[timeEnd + 1] !== 0x7d) return false;
  const isWhole =
    bytes[contentEnd - 1] === 0x6e &&
    contentEnd - contentStart >= 2 &&
    isEscaped(bytes, contentEnd - 1, contentStart);
  entry.timeStart = timeStart;
  entry.timeEnd = timeEnd;
  entry.stream = isStderr ? streams.stderr : streams.stdout;
  entry.isPartial = !isWhole;
  entry.contentStart = contentStart;
  entry.contentEnd = isWhole ? contentEnd - 2 : contentEnd;
  entry.isJson = true;
  return true;
}

/** The content that a JSON string stands for; the string itself where it is none. */
export function unescaped(block: Buffer, { contentStart, contentEnd }: LogEntry): Buffer {
  const content = block.subarray(contentStart, contentEnd);
  if (!content.includes(backslash)) return content;
  try {
    return Buffer.from(JSON.parse(`"${content.toString()}"`) as string);
  } catch {
    return content;
  }
}

function isAt(block: Buffer, at: number, end: number, expected: Buffer): boolean {
  const to = at + expected.length;
  return to <= end && block.compare(expected, 0, expected.length, at, to) === 0;
}

/** Where the quote is that ends the string; undefined when there is none. */
function stringEnd(block: Buffer, start: number, end: number): number | undefined {
  for (let at = block.indexOf(quote, start); at >= 0 && at < end; at = block.indexOf(quote, at + 1)) {
    if (!isEscaped(block, at, start)) return at;
  }
  return undefined;
}

/** Whether an odd number of backslashes stands before `at`. */
function isEscaped(block: Buffer, at: number, start: number): boolean {
  let count = 0;
  while (at - 1 - count >= start && block[at - 1 - count] === backslash) count++;
  return count % 2 === 1;
}
