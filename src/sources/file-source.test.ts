import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { FileSource } from './file-source.ts';
import { LastGoodManifests } from './last-good-manifests.ts';
import { createManifestDecoder } from './manifest-decoder.ts';
import { manifestErrorText } from './manifest-error.ts';
import { maxManifestBytes } from './manifest-file.ts';
import type { SourceUpdate } from './pod-source.ts';

const manifest = (name: string, image = 'i') =>
  `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"${name}"},"spec":{"containers":[{"name":"c","image":"${image}"}]}}`;

/** A source on a real directory, and what it says. */
class Bench {
  readonly root: string;
  readonly directory: string;
  readonly clock = new VirtualClock(Date.now());
  readonly updates: SourceUpdate[] = [];
  #waiting: { until: (update: SourceUpdate) => boolean; resolve: (update: SourceUpdate) => void }[] = [];
  #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  lastGood: LastGoodManifests;
  reads: string[] = [];

  constructor(t: TestContext) {
    this.root = mkdtempSync(join(tmpdir(), 'manifests-'));
    this.directory = join(this.root, 'm');
    mkdirSync(this.directory);
    this.lastGood = this.#kept();
    t.after(async () => {
      await this.stop();
      rmSync(this.root, { recursive: true, force: true });
    });
  }

  async start(path = this.directory): Promise<SourceUpdate> {
    await this.lastGood.load();
    const decode = createManifestDecoder({
      source: 'file',
      nodeName: 'n',
      now: () => this.clock.now(),
      featureEnabled: () => false,
    });
    const source = new FileSource({
      path,
      checkFrequency: 20_000,
      decode: (content, origin) => {
        this.reads.push(origin.slice(origin.lastIndexOf('/') + 1));
        return decode(content, origin);
      },
      clock: this.clock,
      log: silentLogger,
      lastGood: this.lastGood,
    });
    const first = this.until(() => true);
    this.#running = source.run((update) => this.#said(update), this.#stop.signal);
    return await first;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.lastGood.flush();
    this.#stop = new AbortController();
  }

  /** As after a kill: all that is left is on the disk. */
  async restart(): Promise<SourceUpdate> {
    await this.stop();
    this.lastGood = this.#kept();
    this.updates.length = 0;
    return await this.start();
  }

  /** The next update for which `condition` holds. */
  until(condition: (update: SourceUpdate) => boolean): Promise<SourceUpdate> {
    return new Promise((resolve) => this.#waiting.push({ until: condition, resolve }));
  }

  /** Makes the file old, so that it is not taken for half-written, as far as the clock is concerned. */
  async settle(): Promise<void> {
    await this.clock.advance(2000);
  }

  /** Moves time on until `event` has happened; what is on its way from the kernel needs a moment of its own. */
  async passTimeUntil<T>(event: Promise<T>): Promise<T> {
    const outcome: T[] = [];
    void event.then((value) => outcome.push(value));
    while (outcome.length === 0) await this.clock.advance(1000);
    return await event;
  }

  write(name: string, text: string | Uint8Array): void {
    writeFileSync(join(this.directory, name), text);
  }

  replace(name: string, text: string): void {
    writeFileSync(join(this.root, 'new'), text);
    renameSync(join(this.root, 'new'), join(this.directory, name));
  }

  remove(name: string): void {
    rmSync(join(this.directory, name), { recursive: true });
  }

  #kept(): LastGoodManifests {
    return new LastGoodManifests({
      directory: join(this.root, 'kept'),
      clock: this.clock,
      log: silentLogger,
    });
  }

  #said(update: SourceUpdate): void {
    this.updates.push(update);
    this.#waiting = this.#waiting.filter(({ until, resolve }) => {
      if (!until(update)) return true;
      resolve(update);
      return false;
    });
  }
}

const names = ({ pods }: SourceUpdate) => pods.map(({ metadata }) => metadata.name);
const images = ({ pods }: SourceUpdate) => pods.map(({ spec }) => spec.containers[0]?.image);
const texts = ({ errors }: SourceUpdate) => errors.map(manifestErrorText);
const has =
  (...wanted: string[]) =>
  (update: SourceUpdate) =>
    names(update).join() === wanted.join();
const failing = (count: number) => (update: SourceUpdate) => update.errors.length === count;

describe('a directory of manifests', () => {
  it('gives its pods at once, then every change', async (t) => {
    const bench = new Bench(t);
    bench.write('a.yaml', manifest('a'));
    bench.write('b.json', manifest('b'));
    mkdirSync(join(bench.directory, 'sub'));
    writeFileSync(join(bench.directory, 'sub', 'c.yaml'), manifest('c'));
    const first = await bench.start();
    assert.deepEqual(names(first), ['a-n', 'b-n']);
    assert.equal(first.complete, true);
    assert.deepEqual(first.errors, []);

    const added = bench.until(has('a-n', 'b-n', 'd-n'));
    bench.write('d', manifest('d'));
    await added;
    const replaced = bench.until((update) => images(update).includes('new'));
    bench.replace('a.yaml', manifest('a', 'new'));
    assert.notEqual((await replaced).pods[0]?.metadata.uid, first.pods[0]?.metadata.uid);
    const removed = bench.until(has('a-n', 'd-n'));
    bench.remove('b.json');
    await removed;
  });

  it('reads only what changed, and keeps unchanged pods the same objects', async (t) => {
    const bench = new Bench(t);
    bench.write('a.yaml', manifest('a'));
    bench.write('b.yaml', manifest('b'));
    await bench.clock.advance(60_000);
    const first = await bench.start();
    bench.reads.length = 0;
    const changed = bench.until((update) => images(update)[1] === 'new');
    bench.write('b.yaml', manifest('b', 'new'));
    assert.equal((await changed).pods[0], first.pods[0]);
    await bench.clock.advance(20_000);
    const touched = bench.until(has('a-n', 'b-n', 'c-n'));
    utimesSync(join(bench.directory, 'a.yaml'), 1, 1);
    bench.write('c.yaml', manifest('c'));
    await touched;
    assert.ok(!bench.reads.includes('a.yaml'), bench.reads.join());
  });

  it('says nothing of names that editors and hidden files have', async (t) => {
    const bench = new Bench(t);
    for (const name of ['.hidden', '.a.yaml.swp', 'a.yaml.swx', 'a.yaml~', '#a.yaml#', '4913', '.#a.yaml']) {
      bench.write(name, 'rubbish');
    }
    bench.write('a.yaml', manifest('a'));
    const first = await bench.start();
    assert.deepEqual(names(first), ['a-n']);
    assert.deepEqual(first.errors, []);
  });

  it('sees by its scan what inotify cannot: the target of a link', async (t) => {
    const bench = new Bench(t);
    const target = join(bench.root, 'target');
    writeFileSync(target, manifest('a'));
    symlinkSync(target, join(bench.directory, 'a.yaml'));
    await bench.start();
    const changed = bench.until((update) => images(update)[0] === 'new');
    writeFileSync(target, manifest('a', 'new'));
    await bench.passTimeUntil(changed);
  });
});

describe('trouble with one file disturbs no other', () => {
  it('a pipe, a socket, a device, links in a loop and to nothing, a huge file, a wrong kind', async (t) => {
    const bench = new Bench(t);
    bench.write('good.yaml', manifest('good'));
    execFileSync('/usr/bin/mkfifo', [join(bench.directory, 'pipe')]);
    symlinkSync('/dev/zero', join(bench.directory, 'device'));
    symlinkSync('loop', join(bench.directory, 'loop'));
    symlinkSync('nowhere', join(bench.directory, 'dangling'));
    bench.write('huge', '');
    truncateSync(join(bench.directory, 'huge'), maxManifestBytes + 1);
    bench.write('kind', manifest('x').replace('Pod', 'Service'));
    bench.write('latin', Buffer.from(manifest('\u00fc'), 'latin1'));
    const socket = createServer().listen(join(bench.directory, 'socket'));
    t.after(() => socket.close());
    await new Promise((resolve) => socket.once('listening', resolve));

    await bench.settle();
    const first = await bench.start();
    assert.deepEqual(names(first), ['good-n']);
    assert.equal(first.complete, true);
    const [dangling, device, huge, kind, latin, loop, pipe, unix] = texts(first);
    assert.match(
      dangling ?? '',
      /\/dangling: it is a symbolic link to a file that does not exist\. Remove or repair/,
    );
    assert.match(device ?? '', /\/device: it is a device, not a regular file/);
    assert.match(huge ?? '', /\/huge: it has 10485761 bytes or more; a manifest may have at most/);
    assert.match(kind ?? '', /\/kind:1: kind: "Service" cannot be run/);
    assert.match(latin ?? '', /\/latin:1: it holds bytes that are not UTF-8/);
    assert.match(loop ?? '', /\/loop: it is a symbolic link that leads back to itself/);
    assert.match(pipe ?? '', /\/pipe: it is a pipe, not a regular file/);
    assert.match(unix ?? '', /\/socket: it is a socket/);

    const gone = bench.until(failing(7));
    bench.remove('pipe');
    assert.deepEqual(names(await gone), ['good-n']);
  });

  it('of two files with one pod name the one that has it keeps it, until it is gone', async (t) => {
    const bench = new Bench(t);
    bench.write('b.yaml', manifest('a', 'first'));
    await bench.start();
    const refused = bench.until(failing(1));
    bench.write('a.yaml', manifest('a', 'second'));
    const update = await refused;
    assert.deepEqual(images(update), ['first']);
    assert.match(
      texts(update)[0] ?? '',
      /a\.yaml: .*Error validating pod a-n_default from file due to duplicate pod name "a-n", ignoring; .*b\.yaml has it already/,
    );
    const taken = bench.until((now) => images(now)[0] === 'second');
    bench.remove('b.yaml');
    assert.deepEqual((await taken).errors, []);
  });

  it('a file that is renamed is no duplicate of itself', async (t) => {
    const bench = new Bench(t);
    bench.write('b.yaml', manifest('a'));
    await bench.start();
    const renamed = bench.until(({ pods }) => pods.length === 1);
    renameSync(join(bench.directory, 'b.yaml'), join(bench.directory, 'a.yaml'));
    await renamed;
    assert.ok(bench.updates.every(({ errors }) => errors.length === 0));
  });
});

describe('a file that was good', () => {
  it('keeps its pod through bad content and is told wrong after a second', async (t) => {
    const bench = new Bench(t);
    bench.write('a.yaml', manifest('a'));
    const [pod] = (await bench.start()).pods;
    const seen = bench.until(has('a-n', 'b-n'));
    const told = bench.until(failing(1));
    bench.write('a.yaml', manifest('a').slice(0, 40));
    bench.write('b.yaml', manifest('b'));
    assert.deepEqual((await seen).errors, [], 'nothing is said of a text that may be half-written');
    const bad = await bench.passTimeUntil(told);
    assert.equal(bad.pods[0], pod);
    assert.match(texts(bad)[0] ?? '', /a\.yaml:1: .*The last good version of the pod keeps running\.$/);
    const good = bench.until(failing(0));
    bench.write('a.yaml', manifest('a'));
    assert.equal((await good).pods[0], pod, 'the same text is the same pod');
  });

  it('is not reported while it is being written in pieces', async (t) => {
    const bench = new Bench(t);
    await bench.start();
    const whole = bench.until(has('a-n'));
    const text = manifest('a');
    bench.write('a.yaml', '');
    bench.write('a.yaml', text.slice(0, 30));
    bench.write('a.yaml', text);
    await whole;
    assert.ok(bench.updates.every(({ errors }) => errors.length === 0));
  });

  it('keeps its pod while it is a pipe or links to nothing, and loses it when removed', async (t) => {
    const bench = new Bench(t);
    const path = join(bench.directory, 'a.yaml');
    bench.write('a.yaml', manifest('a'));
    await bench.start();
    execFileSync('/usr/bin/mkfifo', [join(bench.root, 'pipe')]);
    const pipe = bench.until(failing(1));
    renameSync(join(bench.root, 'pipe'), path);
    assert.deepEqual(names(await pipe), ['a-n']);
    const dangling = bench.until((update) => /symbolic link/.test(texts(update).join()));
    symlinkSync('nowhere', join(bench.root, 'link'));
    renameSync(join(bench.root, 'link'), path);
    assert.deepEqual(names(await dangling), ['a-n']);
    const removed = bench.until(has());
    bench.remove('a.yaml');
    assert.deepEqual((await removed).errors, []);
  });

  it('keeps its pod over a restart of the agent', async (t) => {
    const bench = new Bench(t);
    bench.write('a.yaml', manifest('a'));
    const before = await bench.start();
    await bench.stop();
    bench.write('a.yaml', 'rubbish: [');
    await bench.settle();
    const after = await bench.restart();
    assert.equal(after.pods[0]?.metadata.uid, before.pods[0]?.metadata.uid);
    assert.equal(after.errors.length, 1);
    assert.equal(after.complete, true);

    await bench.stop();
    bench.remove('a.yaml');
    assert.deepEqual((await bench.restart()).pods, []);
    bench.write('a.yaml', 'rubbish: [');
    await bench.settle();
    assert.deepEqual((await bench.restart()).pods, [], 'a removed manifest is forgotten');
  });

  it('keeps its pod while an editor moves it aside to write it anew', async (t) => {
    const bench = new Bench(t);
    bench.write('a.yaml', manifest('a'));
    await bench.start();
    const aside = bench.until(has('a-n', 'b-n'));
    renameSync(join(bench.directory, 'a.yaml'), join(bench.directory, 'a.yaml~'));
    bench.write('b.yaml', manifest('b'));
    await aside;
    const written = bench.until((update) => images(update)[0] === 'new');
    bench.write('a.yaml', manifest('a', 'new'));
    await written;
    assert.ok(bench.updates.every(({ pods }) => pods.length > 0));

    const gone = bench.until(has('b-n'));
    renameSync(join(bench.directory, 'a.yaml'), join(bench.directory, 'a.yaml~'));
    await bench.passTimeUntil(gone);
  });
});

describe('the path itself', () => {
  it('may be one file', async (t) => {
    const bench = new Bench(t);
    bench.write('a.yaml', manifest('a'));
    bench.write('b.yaml', manifest('b'));
    assert.deepEqual(names(await bench.start(join(bench.directory, 'a.yaml'))), ['a-n']);
    const changed = bench.until((update) => images(update)[0] === 'new');
    bench.replace('a.yaml', manifest('a', 'new'));
    await changed;
    const removed = bench.until(has());
    bench.remove('a.yaml');
    await removed;
    const again = bench.until(has('a-n'));
    bench.write('a.yaml', manifest('a'));
    await again;
  });

  it('may be missing, appear, vanish and appear again', async (t) => {
    const bench = new Bench(t);
    const path = join(bench.directory, 'later');
    const first = await bench.start(path);
    assert.equal(first.complete, true);
    assert.match(texts(first)[0] ?? '', /later: it does not exist\. Make the directory/);
    for (const round of ['one', 'two']) {
      const there = bench.until(failing(0));
      mkdirSync(path);
      await there;
      const seen = bench.until(has(`${round}-n`));
      writeFileSync(join(path, 'a.yaml'), manifest(round));
      await bench.passTimeUntil(seen);
      const gone = bench.until(failing(1));
      rmSync(path, { recursive: true });
      assert.deepEqual(names(await gone), []);
    }
  });
});
