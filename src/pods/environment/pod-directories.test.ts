import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, readdir, readlink, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Pod } from '../../kubernetes/types.ts';
import { mountTmpfs, StillMountedError, unmountAtOrBelow } from '../../linux/mounts.ts';
import { logLinkName, PodDirectories } from './pod-directories.ts';

let base: string;
let directories: PodDirectories;

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'pod-directories-'));
  directories = new PodDirectories({
    rootDirectory: join(base, 'kubelet'),
    podLogsDirectory: join(base, 'log/pods'),
    containerLogsDirectory: join(base, 'log/containers'),
  });
});
afterEach(async () => {
  await unmountAtOrBelow(base);
  rmSync(base, { recursive: true, force: true });
});

function pod(uid: string, name = 'web', annotations: Record<string, string> = {}): Pod {
  return {
    metadata: { name, namespace: 'default', uid, annotations },
    spec: {
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'Default',
      initContainers: [{ name: 'init' }],
      containers: [{ name: 'main' }],
    },
  };
}
const web = pod('uid-1');
const mode = async (path: string) => (await stat(path)).mode & 0o7777;

describe('the directories of a pod', () => {
  it('are made with their modes, whatever the umask, and again without harm', async () => {
    const umask = process.umask(0o027);
    try {
      await directories.prepare(web);
      await directories.prepare(web);
    } finally {
      process.umask(umask);
    }
    assert.equal(directories.podDirectory('uid-1'), join(base, 'kubelet/pods/uid-1'));
    assert.equal(await mode(directories.podDirectory('uid-1')), 0o750);
    assert.equal(await mode(directories.containerDirectory('uid-1', 'init')), 0o750);
    assert.equal(directories.logDirectory(web), join(base, 'log/pods/default_web_uid-1'));
    assert.equal(await mode(directories.logDirectory(web)), 0o755);
    assert.equal(await mode(join(directories.logDirectory(web), 'main')), 0o755);
    assert.equal(await mode(join(base, 'log/pods')), 0o750);
  });

  it('of a static pod have the config hash in the name of the logs', () => {
    const hashed = pod('uid-1', 'web', { 'kubernetes.io/config.hash': 'hash-1' });
    assert.equal(directories.logDirectory(hashed), join(base, 'log/pods/default_web_hash-1'));
  });

  it('tell which attempt comes next by the logs that are there', async () => {
    const logs = join(directories.logDirectory(web), 'main');
    assert.deepEqual(await directories.prepare(web), {});
    for (const name of ['0.log', '3.log.20260101-000000.gz', '2.log', 'other.log', '9.txt']) {
      await writeFile(join(logs, name), '');
    }
    assert.deepEqual(await directories.prepare(web), { main: 4 });
  });

  it('refuse names that lead elsewhere', () => {
    for (const bad of ['..', '', 'a/b', '.']) {
      assert.throws(() => directories.podDirectory(bad), TypeError);
      assert.throws(() => directories.containerDirectory('uid-1', bad), TypeError);
    }
  });
});

describe('termination message files', () => {
  it('are open to every user, one for each attempt, found again, and empty for a new attempt', async () => {
    const umask = process.umask(0o077);
    const path = await directories.createTerminationMessageFile(web, 'main', 2);
    process.umask(umask);
    assert.match(path, /\/containers\/main\/[0-9a-f]{8}$/);
    assert.equal(await mode(path), 0o666);
    assert.equal(directories.terminationMessageFile('uid-1', 'main', 2), path);
    assert.notEqual(directories.terminationMessageFile('uid-1', 'main', 3), path);
    await writeFile(path, 'of a failed start');
    await directories.createTerminationMessageFile(web, 'main', 2);
    assert.equal((await stat(path)).size, 0);
  });
});

describe('links to logs', () => {
  const containerId = 'c'.repeat(64);
  const link = () => join(base, 'log/containers', `web_default_main-${containerId}.log`);

  it('lead to the log of the attempt, and are made right when they do not', async () => {
    await directories.linkLog(web, 'main', containerId, 0);
    await directories.linkLog(web, 'main', containerId, 0);
    assert.equal(await readlink(link()), join(base, 'log/pods/default_web_uid-1/main/0.log'));
    await directories.linkLog(web, 'main', containerId, 1);
    assert.equal(await readlink(link()), join(base, 'log/pods/default_web_uid-1/main/1.log'));
    assert.deepEqual(await readdir(join(base, 'log/containers')), [`web_default_main-${containerId}.log`]);
  });

  it('have names a file system can hold', () => {
    const name = logLinkName('p'.repeat(200), 'n'.repeat(63), 'main', containerId);
    assert.equal(name.length, 255);
    assert.ok(name.endsWith('.log'));
    assert.equal(logLinkName('web', 'default', 'main', 'abc'), 'web_default_main-abc.log');
  });
});

describe('removing', () => {
  it('an instance takes its log, rotated parts, link and message, and nothing of the others', async () => {
    await directories.prepare(web);
    const logs = join(directories.logDirectory(web), 'main');
    for (const name of ['1.log', '1.log.20260101-000000', '1.log.20260101-000000.gz', '11.log', '2.log']) {
      await writeFile(join(logs, name), '');
    }
    await directories.linkLog(web, 'main', 'aaa', 1);
    await directories.linkLog(web, 'main', 'bbb', 2);
    await directories.createTerminationMessageFile(web, 'main', 1);
    const kept = await directories.createTerminationMessageFile(web, 'main', 2);
    await directories.removeInstance(web, 'main', 'aaa', 1);
    await directories.removeInstance(web, 'main', 'aaa', 1);
    assert.deepEqual((await readdir(logs)).sort(), ['11.log', '2.log']);
    assert.deepEqual(await readdir(join(base, 'log/containers')), ['web_default_main-bbb.log']);
    await stat(kept);
    assert.equal((await readdir(directories.containerDirectory('uid-1', 'main'))).length, 1);
  });

  it('leaves a link with a cut name that a newer instance has taken over', async () => {
    const long = pod('uid-1', 'p'.repeat(253));
    await directories.linkLog(long, 'main', 'aaa', 1);
    await directories.linkLog(long, 'main', 'bbb', 2);
    await directories.removeInstance(long, 'main', 'aaa', 1);
    assert.equal((await readdir(join(base, 'log/containers'))).length, 1);
    await directories.erase(long);
    assert.deepEqual(await readdir(join(base, 'log/containers')), []);
  });

  it('a pod takes everything of it and nothing of others', async () => {
    const twin = pod('uid-2');
    for (const each of [web, twin]) {
      await directories.prepare(each);
      await directories.linkLog(each, 'main', `id-of-${each.metadata.uid}`, 0);
    }
    await symlink('/elsewhere', join(base, 'log/containers/web_default_foreign.log'));
    await symlink(base, join(directories.podDirectory('uid-1'), 'link'));
    await directories.erase(web);
    await directories.erase(web);
    assert.deepEqual(await readdir(join(base, 'kubelet/pods')), ['uid-2']);
    assert.deepEqual(await readdir(join(base, 'log/pods')), ['default_web_uid-2']);
    assert.deepEqual((await readdir(join(base, 'log/containers'))).sort(), [
      'web_default_foreign.log',
      'web_default_main-id-of-uid-2.log',
    ]);
  });

  it('an orphan needs only the uid', async () => {
    await directories.prepare(web);
    await directories.linkLog(web, 'main', 'aaa', 0);
    await mkdir(join(base, 'log/pods/not-a-pod'));
    await mkdir(join(base, 'kubelet/pods/uid-3'));
    assert.deepEqual(
      (await directories.podsOnDisk()).sort((a, b) => a.uid.localeCompare(b.uid)),
      [
        { uid: 'uid-1', hasDirectory: true, logDirectories: ['default_web_uid-1'] },
        { uid: 'uid-3', hasDirectory: true, logDirectories: [] },
      ],
    );
    await directories.eraseOrphan('uid-1');
    await directories.eraseOrphan('uid-3');
    await directories.eraseOrphan('never-seen');
    assert.deepEqual(await directories.podsOnDisk(), []);
    assert.deepEqual(await readdir(join(base, 'log/containers')), []);
    assert.deepEqual(await readdir(join(base, 'log/pods')), ['not-a-pod']);
  });

  it('deletes nothing of a pod while a volume is mounted', async () => {
    await directories.prepare(web);
    const volume = join(directories.podDirectory('uid-1'), 'volumes/kubernetes.io~empty-dir/mem');
    await mkdir(volume, { recursive: true });
    await mountTmpfs(volume, []);
    await writeFile(join(volume, 'file'), '');
    await assert.rejects(directories.erase(web), StillMountedError);
    await stat(join(volume, 'file'));
    await stat(directories.containerDirectory('uid-1', 'main'));
  });
});
