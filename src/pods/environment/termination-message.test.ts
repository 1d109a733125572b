import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { cutTerminationMessage, readTerminationMessage } from './termination-message.ts';

let base: string;
let file: string;
let log: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'termination-message-'));
  file = join(base, '0badcafe');
  log = join(base, '0.log');
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const read = async (more: { policy?: string; exitCode?: number } = {}) =>
  await readTerminationMessage({ file, log, policy: 'FallbackToLogsOnError', exitCode: 1, ...more });
const line = (content: string, tag = 'F', stream = 'stdout') =>
  `2026-01-01T00:00:00.000000000Z ${stream} ${tag} ${content}\n`;

describe('the termination message', () => {
  it('is what the container wrote, the end of it when it wrote too much', async () => {
    await writeFile(file, 'the disk is full\n');
    await writeFile(log, line('not this'));
    assert.equal(await read(), 'the disk is full\n');
    await writeFile(file, `${'x'.repeat(5000)}end`);
    const cut = await read();
    assert.equal(cut.length, 4096);
    assert.ok(cut.endsWith('xend'));
  });

  it('is the end of the log only after a failure without a word, and only by that policy', async () => {
    await writeFile(file, '');
    await writeFile(log, line('first') + line('second', 'F', 'stderr'));
    assert.equal(await read(), 'first\nsecond\n');
    assert.equal(await read({ exitCode: 0 }), '');
    assert.equal(await read({ policy: 'File' }), '');
    const withoutFile = { log, policy: 'FallbackToLogsOnError', exitCode: 137 };
    assert.equal(await readTerminationMessage(withoutFile), 'first\nsecond\n');
  });

  it('joins parts of lines, and keeps lines of no known shape', async () => {
    await writeFile(
      log,
      line('one ', 'P') + line('line', 'F:more') + 'strange\n' + line('cut off').slice(0, -1),
    );
    assert.equal(await read(), 'one line\nstrange\ncut off');
  });

  it('goes on into the rotated parts of the log, compressed or not, where the live one is short', async () => {
    const lines = (from: number, count: number) =>
      Array.from({ length: count }, (_, index) => line(`l${from + index}`)).join('');
    await writeFile(`${log}.20260101-000000.gz`, gzipSync(lines(0, 60)));
    await writeFile(`${log}.20260102-000000`, lines(60, 50));
    await writeFile(log, lines(110, 5));
    const shown = (await read()).trimEnd().split('\n');
    assert.deepEqual([shown[0], shown.at(-1), shown.length], ['l35', 'l114', 80]);
    rmSync(log);
    assert.match(await read(), /^l30\n.*l109\n$/s);
  });

  it('takes 80 lines and 2048 bytes of a log at most', async () => {
    await writeFile(log, Array.from({ length: 200 }, (_, i) => line(`l${i}`)).join(''));
    const short = (await read()).trimEnd().split('\n');
    assert.equal(short.length, 80);
    assert.equal(short[0], 'l120');
    await writeFile(log, Array.from({ length: 50 }, () => line('y'.repeat(16_000))).join(''));
    const long = await read();
    assert.equal(long.length, 2048);
    assert.match(long, /^y+\n$/);
  });

  it('never shows half a character', async () => {
    await writeFile(file, '€'.repeat(3000));
    assert.match(await read(), /^€{1365}$/);
    await writeFile(file, '');
    await writeFile(log, line('ä'.repeat(3000)));
    assert.match(await read(), /^ä+\n$/);
  });

  it('is empty when there is nothing, and says what cannot be read', async () => {
    assert.equal(await read(), '');
    execFileSync('mkfifo', [file]);
    assert.equal(await read(), `Error on reading termination log ${file}: it is no regular file`);
    rmSync(file);
    await symlink('/etc/shadow', file);
    assert.match(await read(), /^Error on reading termination log .*ELOOP/);
  });

  it('is cut so that all containers of a pod fit', () => {
    assert.equal(cutTerminationMessage('short', 3), 'short');
    assert.equal(cutTerminationMessage('x'.repeat(5000), 3).length, 4096);
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', minLength: 500, maxLength: 900 }),
        fc.integer({ min: 1, max: 50 }),
        (message, count) => {
          const cut = cutTerminationMessage(message, count);
          assert.ok(Buffer.byteLength(cut) * count <= 12_288);
          assert.ok(message.startsWith(cut));
          assert.ok(
            Buffer.byteLength(message) <= 12_288 / count
              ? cut === message
              : Buffer.byteLength(cut) > 12_288 / count - 5,
          );
        },
      ),
    );
  });
});
