import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cpioArchive } from './cpio-archive.ts';

test('an archive lists folders and files with their content on four-byte boundaries', () => {
  const archive = cpioArchive([
    { path: 'bin' },
    { path: 'bin/tool', content: Buffer.from('hello') },
  ]).toString();
  const zeros = (count: number) => '00000000'.repeat(count);
  const folder = `07070100000001000041ed${zeros(2)}00000001${zeros(6)}00000004${zeros(1)}bin\0`;
  const file = `07070100000002000081ed${zeros(2)}00000001${zeros(1)}00000005${zeros(4)}00000009${zeros(1)}`;
  const end = `07070100000000000081ed${zeros(2)}00000001${zeros(6)}0000000b${zeros(1)}TRAILER!!!\0`;
  const pad = (text: string) => text.padEnd(Math.ceil(text.length / 4) * 4, '\0');
  assert.equal(archive, pad(folder) + pad(`${file}bin/tool\0`) + pad('hello') + pad(end));
});
