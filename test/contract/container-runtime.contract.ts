/**
 * What the agent relies on of a container runtime, stated once and run on the fake and on real ones. Where
 * runtimes differ and the agent copes, the suite accepts each.
 *
 * The containers run four programs, told apart by the container's name, which is all a fake has to know:
 * `obedient` ends with code 0 on SIGTERM, `stubborn` ignores it, `job` writes a line and ends with code 0,
 * `failing` ends with code 3, and `broken` is a command that does not exist.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import type { ContainerRuntime } from '../../src/runtime/container-runtime.ts';
import type { ContainerStatus, PodSandboxConfig } from '../../src/runtime/generated/cri.ts';
import { ContainerState, PodSandboxState } from '../../src/runtime/generated/cri.ts';
import { isNotFound, RuntimeErrorCode } from '../../src/runtime/runtime-call-error.ts';
import type { RuntimeEvent, RuntimeEventSource } from '../../src/runtime/runtime-event.ts';
import {
  containerConfig,
  containerFilter,
  imageSpec,
  sandboxConfig,
  sandboxFilter,
} from '../fixtures/cri-runtime/requests.ts';

export interface RuntimeUnderTest {
  readonly runtime: ContainerRuntime;
  /** An image on the node that has busybox's commands. */
  readonly image: string;
  readonly events?: RuntimeEventSource;
  /** Folder for log files; without it logs are not looked at. */
  readonly logRoot?: string;
  /** What every sandbox needs here, such as a cgroup parent. */
  readonly sandbox?: Partial<PodSandboxConfig>;
  /** Whether sandboxes get addresses; true by default. */
  readonly hasNetwork?: boolean;
  /** Moves a virtual clock; absent where time passes by itself. */
  readonly passTime?: (ms: number) => Promise<void>;
  tearDown(): Promise<void>;
}

const programs = {
  obedient: ['sh', '-c', "trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done"],
  stubborn: ['sh', '-c', "trap '' TERM; while :; do sleep 1; done"],
  job: ['sh', '-c', 'echo done'],
  failing: ['sh', '-c', 'exit 3'],
  broken: ['/does/not/exist'],
};
export type Program = keyof typeof programs;

/** Stopping what is gone is refused by some (containerd 1.6); the agent takes NotFound for done. */
async function doneOrNotFound(call: Promise<unknown>): Promise<void> {
  await call.catch((error: unknown) => assert.ok(isNotFound(error), String(error)));
}

export function describeContainerRuntime(
  name: string,
  setUp: () => Promise<RuntimeUnderTest>,
  options: { readonly skip?: string | false } = {},
): void {
  describe(`container runtime contract: ${name}`, { skip: options.skip ?? false }, () => {
    let it_: RuntimeUnderTest;
    const made: string[] = [];
    before(async () => {
      it_ = await setUp();
    });
    after(() => it_.tearDown());
    afterEach(async () => {
      for (const podSandboxId of made.splice(0)) {
        await doneOrNotFound(it_.runtime.stopPodSandbox({ podSandboxId }));
        await it_.runtime.removePodSandbox({ podSandboxId });
      }
    });

    const newPod = (pod = `contract-${randomUUID().slice(0, 8)}`, attempt = 0): PodSandboxConfig =>
      sandboxConfig(
        pod,
        { logDirectory: it_.logRoot ? path.join(it_.logRoot, pod) : '', ...it_.sandbox },
        attempt,
      );

    async function run(config: PodSandboxConfig): Promise<string> {
      const { podSandboxId } = await it_.runtime.runPodSandbox({ config, runtimeHandler: '' });
      made.push(podSandboxId);
      return podSandboxId;
    }

    async function create(
      podSandboxId: string,
      pod: PodSandboxConfig,
      program: Program,
      attempt = 0,
    ): Promise<string> {
      const config = containerConfig(
        program,
        {
          image: it_.image,
          command: programs[program],
          labels: { ...pod.labels, 'io.kubernetes.container.name': program },
          annotations: { 'io.kubernetes.container.restartCount': String(attempt) },
        },
        attempt,
      );
      const request = { podSandboxId, config, sandboxConfig: pod };
      return (await it_.runtime.createContainer(request)).containerId;
    }

    async function start(program: Program) {
      const pod = newPod();
      const podSandboxId = await run(pod);
      const containerId = await create(podSandboxId, pod, program);
      await it_.runtime.startContainer({ containerId });
      return { pod, podSandboxId, containerId };
    }

    async function statusOf(containerId: string): Promise<ContainerStatus> {
      const { status } = await it_.runtime.containerStatus({ containerId, verbose: false });
      assert.ok(status);
      return status;
    }

    /** A real program needs real time to end; a fake one is over at once. */
    async function exited(containerId: string): Promise<ContainerStatus> {
      for (let attempt = 0; attempt < 500; attempt++) {
        const status = await statusOf(containerId);
        if (status.state === ContainerState.CONTAINER_EXITED) return status;
        await wait(20);
      }
      throw new Error(`container ${containerId} does not end`);
    }

    const unknown = 'f'.repeat(64);
    const notFound = { notFound: true };

    it('speaks CRI v1 and is ready', async () => {
      const version = await it_.runtime.version({ version: '0.1.0' });
      assert.equal(version.runtimeApiVersion, 'v1');
      assert.notEqual(version.runtimeName, '');
      const { status } = await it_.runtime.status({ verbose: false });
      const ready = status?.conditions.find(({ type }) => type === 'RuntimeReady');
      assert.equal(ready?.status, true);
    });

    it('runs a sandbox, a container in it, and tells how it ended', async () => {
      const pod = newPod();
      const podSandboxId = await run(pod);
      const sandbox = await it_.runtime.podSandboxStatus({ podSandboxId, verbose: false });
      assert.equal(sandbox.status?.state, PodSandboxState.SANDBOX_READY);
      assert.deepEqual(sandbox.status?.metadata, pod.metadata);
      assert.deepEqual(sandbox.status?.labels, pod.labels);
      assert.ok((sandbox.status?.createdAt ?? 0n) > 0n);
      if (it_.hasNetwork !== false) assert.match(sandbox.status?.network?.ip ?? '', /^[0-9a-f.:]+$/);

      const containerId = await create(podSandboxId, pod, 'failing', 4);
      const created = await statusOf(containerId);
      assert.equal(created.state, ContainerState.CONTAINER_CREATED);
      assert.deepEqual(created.metadata, { name: 'failing', attempt: 4 });
      assert.deepEqual(created.annotations, { 'io.kubernetes.container.restartCount': '4' });
      assert.deepEqual([created.startedAt, created.finishedAt], [0n, 0n]);

      await it_.runtime.startContainer({ containerId });
      const ended = await exited(containerId);
      assert.deepEqual([ended.exitCode, ended.reason], [3, 'Error']);
      // A short program may have ended before the runtime notes that it has started: only these are sure.
      assert.ok(ended.createdAt > 0n && ended.startedAt >= ended.createdAt);
      assert.ok(ended.finishedAt >= ended.createdAt);
    });

    it('says Completed of a program that ended well, and writes its log', async () => {
      const { containerId } = await start('job');
      const ended = await exited(containerId);
      assert.deepEqual([ended.exitCode, ended.reason], [0, 'Completed']);
      if (!it_.logRoot) return;
      assert.ok(ended.logPath.startsWith(it_.logRoot));
      assert.match(readFileSync(ended.logPath, 'utf8'), /^\d{4}-\d\d-\d\dT\S+ stdout F done\n$/);
    });

    it('leaves a container exited whose command cannot be started', async () => {
      const pod = newPod();
      const podSandboxId = await run(pod);
      const containerId = await create(podSandboxId, pod, 'broken');
      await assert.rejects(it_.runtime.startContainer({ containerId }), { name: 'RuntimeCallError' });
      const status = await statusOf(containerId);
      assert.equal(status.state, ContainerState.CONTAINER_EXITED);
      assert.deepEqual([status.exitCode, status.reason], [128, 'StartError']);
      assert.notEqual(status.message, '');
    });

    it('starts a container once', async () => {
      const { containerId } = await start('obedient');
      await assert.rejects(it_.runtime.startContainer({ containerId }), { name: 'RuntimeCallError' });
      assert.equal((await statusOf(containerId)).state, ContainerState.CONTAINER_RUNNING);
    });

    it('keeps the names of sandboxes and containers apart by attempt', async () => {
      const pod = newPod();
      const podSandboxId = await run(pod);
      await assert.rejects(run(pod), /is reserved for/);
      await create(podSandboxId, pod, 'obedient');
      await assert.rejects(create(podSandboxId, pod, 'obedient'), /is reserved for/);
      await create(podSandboxId, pod, 'obedient', 1);
      await run(newPod(pod.metadata?.name, 1));
    });

    it('frees a name with what held it', async () => {
      const pod = newPod();
      const podSandboxId = await run(pod);
      await it_.runtime.removeContainer({ containerId: await create(podSandboxId, pod, 'obedient') });
      await create(podSandboxId, pod, 'obedient');
      await it_.runtime.removePodSandbox({ podSandboxId });
      await run(pod);
    });

    it('says NotFound of what it does not know', async () => {
      const pod = newPod();
      const containerId = unknown;
      await assert.rejects(it_.runtime.containerStatus({ containerId, verbose: false }), notFound);
      await assert.rejects(it_.runtime.startContainer({ containerId }), notFound);
      await assert.rejects(it_.runtime.execSync({ containerId, cmd: ['true'], timeout: 5n }), notFound);
      await assert.rejects(it_.runtime.podSandboxStatus({ podSandboxId: unknown, verbose: false }), notFound);
      await assert.rejects(create(unknown, pod, 'job'), notFound);
    });

    it('takes the removal of what it does not know for done', async () => {
      await it_.runtime.removeContainer({ containerId: unknown });
      await it_.runtime.removePodSandbox({ podSandboxId: unknown });
      await doneOrNotFound(it_.runtime.stopPodSandbox({ podSandboxId: unknown }));
      await doneOrNotFound(it_.runtime.stopContainer({ containerId: unknown, timeout: 1n }));
    });

    it('lists what the filter asks for', async () => {
      const { pod, podSandboxId, containerId } = await start('obedient');
      const other = await start('failing');
      await exited(other.containerId);
      const labelSelector = { 'io.kubernetes.pod.uid': pod.metadata?.uid ?? '' };
      const running = { state: ContainerState.CONTAINER_RUNNING };
      const containers = async (filter: Parameters<typeof containerFilter>[0]) =>
        (await it_.runtime.listContainers({ filter: containerFilter(filter) })).containers.map(
          ({ id }) => id,
        );
      assert.deepEqual(await containers({ labelSelector }), [containerId]);
      assert.deepEqual(await containers({ podSandboxId }), [containerId]);
      assert.deepEqual(await containers({ labelSelector, state: running }), [containerId]);
      assert.deepEqual(await containers({ podSandboxId: other.podSandboxId, state: running }), []);
      assert.deepEqual(await containers({ id: other.containerId }), [other.containerId]);
      const { items } = await it_.runtime.listPodSandbox({ filter: sandboxFilter({ labelSelector }) });
      assert.deepEqual(
        items.map(({ id, metadata }) => [id, metadata]),
        [[podSandboxId, pod.metadata]],
      );
      const all = await it_.runtime.listContainers({ filter: undefined });
      const shown = all.containers.filter(({ id }) => id === containerId || id === other.containerId);
      assert.equal(shown.length, 2);
      assert.equal(shown.find(({ id }) => id === containerId)?.podSandboxId, podSandboxId);
    });

    it('gives a program its grace period to obey', async () => {
      const { containerId } = await start('obedient');
      // The program sets its trap first thing; a signal before that would find it untrapped.
      if (!it_.passTime) await wait(500);
      await it_.runtime.stopContainer({ containerId, timeout: 20n });
      const ended = await statusOf(containerId);
      assert.deepEqual(
        [ended.state, ended.exitCode, ended.reason],
        [ContainerState.CONTAINER_EXITED, 0, 'Completed'],
      );
      await it_.runtime.stopContainer({ containerId, timeout: 20n });
      assert.equal((await statusOf(containerId)).finishedAt, ended.finishedAt);
    });

    it('kills a program that does not obey', async () => {
      const { containerId } = await start('stubborn');
      const stopped = it_.runtime.stopContainer({ containerId, timeout: 1n });
      await it_.passTime?.(1000);
      await stopped;
      const ended = await statusOf(containerId);
      assert.deepEqual([ended.state, ended.exitCode], [ContainerState.CONTAINER_EXITED, 137]);
    });

    it('kills at once without a grace period', async () => {
      const { containerId } = await start('stubborn');
      await it_.runtime.stopContainer({ containerId, timeout: 0n });
      assert.equal((await statusOf(containerId)).exitCode, 137);
    });

    it('removes a running container', async () => {
      const { containerId, podSandboxId } = await start('stubborn');
      await it_.runtime.removeContainer({ containerId });
      const filter = containerFilter({ podSandboxId });
      assert.deepEqual(await it_.runtime.listContainers({ filter }), { containers: [] });
      await assert.rejects(it_.runtime.containerStatus({ containerId, verbose: false }), notFound);
    });

    it('ends what runs in a sandbox that is stopped, and gives its address back', async () => {
      const { pod, podSandboxId, containerId } = await start('stubborn');
      await it_.runtime.stopPodSandbox({ podSandboxId });
      assert.equal((await exited(containerId)).exitCode, 137);
      const { status } = await it_.runtime.podSandboxStatus({ podSandboxId, verbose: false });
      assert.equal(status?.state, PodSandboxState.SANDBOX_NOTREADY);
      assert.equal(status?.network?.ip ?? '', '');
      await assert.rejects(create(podSandboxId, pod, 'job'), { name: 'RuntimeCallError' });
      await it_.runtime.stopPodSandbox({ podSandboxId });
    });

    it('removes a running sandbox with everything in it', async () => {
      const { podSandboxId, containerId } = await start('stubborn');
      await it_.runtime.removePodSandbox({ podSandboxId });
      await assert.rejects(it_.runtime.podSandboxStatus({ podSandboxId, verbose: false }), notFound);
      await assert.rejects(it_.runtime.containerStatus({ containerId, verbose: false }), notFound);
      await it_.runtime.removePodSandbox({ podSandboxId });
    });

    it('runs commands in a container', async () => {
      const { containerId } = await start('obedient');
      const said = await it_.runtime.execSync({ containerId, cmd: ['echo', 'hello'], timeout: 20n });
      assert.deepEqual([said.exitCode, said.stdout.toString(), said.stderr.toString()], [0, 'hello\n', '']);
      const failed = await it_.runtime.execSync({ containerId, cmd: ['sh', '-c', 'exit 7'], timeout: 20n });
      assert.equal(failed.exitCode, 7);
      const late = assert.rejects(it_.runtime.execSync({ containerId, cmd: ['sleep', '60'], timeout: 1n }), {
        code: RuntimeErrorCode.DeadlineExceeded,
      });
      await it_.passTime?.(1000);
      await late;
      assert.equal((await statusOf(containerId)).state, ContainerState.CONTAINER_RUNNING);
    });

    it('runs no commands in a container that does not run', async () => {
      const { containerId } = await start('failing');
      await exited(containerId);
      await assert.rejects(it_.runtime.execSync({ containerId, cmd: ['true'], timeout: 5n }), {
        name: 'RuntimeCallError',
      });
    });

    it('knows the images it has', async () => {
      const { image } = await it_.runtime.imageStatus({ image: imageSpec(it_.image), verbose: false });
      assert.match(image?.id ?? '', /^sha256:[0-9a-f]{64}$/);
      const byId = await it_.runtime.imageStatus({ image: imageSpec(image?.id ?? ''), verbose: false });
      assert.deepEqual(byId.image?.repoTags, image?.repoTags);
      const { images } = await it_.runtime.listImages({ filter: undefined });
      assert.ok(images.some(({ id }) => id === image?.id));
      const absent = imageSpec('registry.invalid/none/such:1');
      assert.equal((await it_.runtime.imageStatus({ image: absent, verbose: false })).image, undefined);
      await it_.runtime.removeImage({ image: absent });
    });

    it('makes no container from an image that is absent', async () => {
      const pod = newPod();
      const podSandboxId = await run(pod);
      const config = containerConfig('main', { image: 'registry.invalid/none/such:1' });
      await assert.rejects(
        it_.runtime.createContainer({ podSandboxId, config, sandboxConfig: pod }),
        notFound,
      );
    });

    it('makes containers from an image id', async () => {
      const { image } = await it_.runtime.imageStatus({ image: imageSpec(it_.image), verbose: false });
      const pod = newPod();
      const podSandboxId = await run(pod);
      const config = containerConfig('job', { image: image?.id ?? '', command: programs.job });
      const { containerId } = await it_.runtime.createContainer({ podSandboxId, config, sandboxConfig: pod });
      await it_.runtime.startContainer({ containerId });
      assert.equal((await exited(containerId)).exitCode, 0);
    });

    it('reopens the log of a running container', async () => {
      const { containerId } = await start('obedient');
      await it_.runtime.reopenContainerLog({ containerId });
    });

    it('gives a call up on its signal', async () => {
      const stop = new AbortController();
      const reason = new Error('not needed');
      stop.abort(reason);
      await assert.rejects(it_.runtime.version({ version: '' }, { signal: stop.signal }), reason);
    });

    it('tells the end of containers and sandboxes, and not that of commands', async (test) => {
      if (!it_.events) return test.skip('this runtime has no events');
      const heard: RuntimeEvent[] = [];
      const stop = new AbortController();
      const listening = it_.events.run((event) => heard.push(event), stop.signal);
      const hears = async (kind: string, id: string) => {
        for (let attempt = 0; attempt < 500; attempt++) {
          if (heard.some((event) => event.kind === kind && 'id' in event && event.id === id)) return;
          await wait(20);
        }
        throw new Error(`no ${kind} of ${id} among ${JSON.stringify(heard)}`);
      };
      const { podSandboxId, containerId } = await start('stubborn');
      assert.equal(heard[0]?.kind, 'gap');
      await it_.runtime.execSync({ containerId, cmd: ['true'], timeout: 20n });
      await wait(it_.passTime ? 0 : 200);
      assert.deepEqual(
        heard.filter(({ kind }) => kind === 'exited'),
        [],
      );
      await it_.runtime.stopContainer({ containerId, timeout: 0n });
      await hears('exited', containerId);
      await it_.runtime.stopPodSandbox({ podSandboxId });
      await hears('exited', podSandboxId);
      await it_.runtime.removePodSandbox({ podSandboxId });
      await hears('changed', containerId);
      stop.abort();
      await listening;
    });
  });
}
