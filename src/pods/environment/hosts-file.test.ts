import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { hostNetworkHostsFile, podHostsFile, writeHostsFile } from './hosts-file.ts';

const loopback =
  '# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n' +
  'fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n';
const aliases = [
  { ip: '10.1.2.3', hostnames: ['a.example', 'b.example'] },
  { ip: '10.1.2.4', hostnames: ['c.example'] },
];
const aliasText = '\n# Entries added by HostAliases.\n10.1.2.3\ta.example\tb.example\n10.1.2.4\tc.example\n';

describe('the hosts file', () => {
  for (const [what, pod, text] of [
    ['its names', { ips: ['10.0.0.5'], hostname: 'web' }, `${loopback}10.0.0.5\tweb\n`],
    [
      'a domain and two addresses',
      { ips: ['10.0.0.5', 'fd00::5'], hostname: 'web', domain: 'db.shop.svc.cluster.local' },
      `${loopback}10.0.0.5\tweb.db.shop.svc.cluster.local\tweb\nfd00::5\tweb.db.shop.svc.cluster.local\tweb\n`,
    ],
    [
      'aliases',
      { ips: ['10.0.0.5'], hostname: 'web', hostAliases: aliases },
      `${loopback}10.0.0.5\tweb\n${aliasText}`,
    ],
    ['no aliases', { ips: [], hostname: 'web', hostAliases: [] }, loopback],
  ] as const) {
    it(`of a pod with ${what}`, () => {
      assert.equal(podHostsFile(pod as Parameters<typeof podHostsFile>[0]), text);
    });
  }

  it('of a pod on the network of the node is the file of the node', () => {
    const own = '127.0.0.1\tlocalhost\n192.0.2.1\tnode-1\n';
    const head = '# Kubernetes-managed hosts file (host network).\n';
    assert.equal(hostNetworkHostsFile(own), `${head}${own}`);
    assert.equal(hostNetworkHostsFile(own, aliases), `${head}${own}${aliasText}`);
  });
});

describe('writing the hosts file', () => {
  let base: string;
  beforeEach(() => {
    base = mkdtempSync(join(tmpdir(), 'hosts-file-'));
  });
  afterEach(() => rmSync(base, { recursive: true }));

  it('keeps the file itself, which containers have mounted, and its mode', async () => {
    const path = join(base, 'pod/etc-hosts');
    const umask = process.umask(0o077);
    try {
      await writeHostsFile(path, 'a longer content\n');
    } finally {
      process.umask(umask);
    }
    const before = await stat(path);
    assert.equal(before.mode & 0o7777, 0o644);
    await writeHostsFile(path, 'short\n');
    assert.equal(await readFile(path, 'utf8'), 'short\n');
    const after = await stat(path);
    assert.equal(after.ino, before.ino);
    await writeHostsFile(path, 'short\n');
    assert.equal((await stat(path)).mtimeMs, after.mtimeMs);
  });

  it('follows no link', async () => {
    await writeFile(join(base, 'precious'), 'kept');
    await symlink(join(base, 'precious'), join(base, 'etc-hosts'));
    await assert.rejects(writeHostsFile(join(base, 'etc-hosts'), 'x'), { code: 'ELOOP' });
    assert.equal(await readFile(join(base, 'precious'), 'utf8'), 'kept');
  });
});
