/**
 * From a pod's spec to the runtime's configurations on this node: DNS, host name, cgroup, environment,
 * mounts and everything the translation wants to know. Keeps what was learned on the way there (volumes
 * that are set up, users of images) until the pod is gone.
 */
import { readFile, stat } from 'node:fs/promises';
import type { ContainerMount } from '../kubernetes/container-mount.ts';
import { buildEnvironment, EnvironmentError } from '../kubernetes/environment.ts';
import type { ContainerPlace } from '../kubernetes/init-containers.ts';
import { podHostname } from '../kubernetes/pod-hostname.ts';
import type { ResourceAmounts } from '../kubernetes/pod-resources.ts';
import type { Pod } from '../kubernetes/types.ts';
import { NotSyncedError } from '../objects/synced-objects.ts';
import type { ContainerConfig, PodSandboxConfig } from '../runtime/generated/cri.ts';
import type { ImageOutcome, ImagePuller } from '../runtime/images/image-puller.ts';
import { containerConfig } from '../runtime/translation/container-config.ts';
import { ContainerConfigError } from '../runtime/translation/container-config-error.ts';
import type { NodeResourceSettings } from '../runtime/translation/linux-resources.ts';
import { etcHostsMount, needsEtcHosts, terminationLogMount } from '../runtime/translation/mounts.ts';
import type { UserNamespaceRange } from '../runtime/translation/namespaces.ts';
import { sandboxConfig } from '../runtime/translation/sandbox-config.ts';
import type { ImageUser, NodeSecuritySettings } from '../runtime/translation/security-context.ts';
import { podEventObject } from '../telemetry/events.ts';
import { ContainerMountError } from '../volumes/container-mounts.ts';
import type { PodVolumes } from '../volumes/pod-volumes.ts';
import { VolumeFileError } from '../volumes/volume-file.ts';
import type { MountedVolume } from '../volumes/volume-kind.ts';
import type { ClusterKnowledge } from './cluster-knowledge.ts';
import {
  type DnsConfig,
  maxResolvConfBytes,
  type NodeDns,
  parseResolvConf,
  podDnsConfig,
} from './environment/dns-config.ts';
import { hostNetworkHostsFile, podHostsFile, writeHostsFile } from './environment/hosts-file.ts';
import type { PodDirectories } from './environment/pod-directories.ts';
import { UserNamespaceError, type UserNamespaces } from './environment/user-namespaces.ts';
import type { ContainerConfigRequest, ImageSupply, PodConfigs } from './executors/pod-services.ts';
import { ImageVolumes, type ImageVolumesOptions } from './image-volumes.ts';
import type { PullMessages } from './pull-messages.ts';
import { nextBackoffAnnotation } from './restart-backoff.ts';

/** What configurations of this node depend on beside the pod. */
export interface NodePodConfigsOptions
  extends Pick<ImageVolumesOptions, 'imageVolumesMissing' | 'credentialsFor' | 'events'> {
  readonly nodeName: string;
  /** Addresses of the node as they are now: `status.hostIPs`. */
  readonly nodeAddresses: () => readonly string[];
  readonly nodeAllocatable: ResourceAmounts;
  readonly dns: Omit<NodeDns, 'host'>;
  /** `resolvConf`; absent when pods get nothing from the node. */
  readonly resolvConf: string | undefined;
  readonly resources: NodeResourceSettings;
  readonly security: NodeSecuritySettings;
  readonly stopSignals: boolean;
  readonly recursiveReadOnly: (runtimeHandler: string) => boolean;
  /** Absent: no pod of this node can have a user namespace of its own. */
  readonly userNamespaces?: PodUserNamespaces | undefined;
  /** SELinux is on: files made for containers are labelled for them. */
  readonly selinux?: boolean | undefined;
  /** Put on every sandbox beside the pod's own annotations. */
  readonly sandboxAnnotations: Readonly<Record<string, string>>;
  readonly cgroupParentOf: (pod: Pod) => string;
  readonly directories: PodDirectories;
  readonly volumes: PodVolumes;
  readonly images: ImagePuller;
  readonly pullMessages: PullMessages;
  readonly cluster: ClusterKnowledge;
}

/** Ids for pods with a user namespace of their own. */
export interface PodUserNamespaces extends Pick<UserNamespaces, 'allocate' | 'release'> {
  /** Whether containers of this runtime handler can have one. */
  supports(runtimeHandler: string): boolean;
}

/** What keeps a container from being made until the pod, or what it refers to, is another. */
const configErrors = [EnvironmentError, ContainerMountError, VolumeFileError, NotSyncedError];

/** Makes the runtime's configurations for pods and containers of this node. */
export class NodePodConfigs implements PodConfigs, ImageSupply {
  readonly #options: NodePodConfigsOptions;
  readonly #volumes = new Map<string, readonly MountedVolume[]>();
  readonly #sandboxes = new Map<
    string,
    { readonly pod: Pod; readonly attempt: number; readonly config: Promise<PodSandboxConfig> }
  >();
  /** By pod and image. */
  readonly #imageUsers = new Map<string, Map<string, ImageUser>>();
  readonly #imageVolumes: ImageVolumes;
  /** By pod: its runtime handler. */
  readonly #handlers = new Map<string, string>();

  constructor(options: NodePodConfigsOptions) {
    this.#options = options;
    this.#imageVolumes = new ImageVolumes(options);
  }

  async setUp(pod: Pod, signal: AbortSignal): Promise<void> {
    // For the status of pods that an earlier agent made; nothing waits for it.
    void this.runtimeHandler(pod).catch(() => {});
    this.#volumes.set(pod.metadata.uid, await this.#options.volumes.setUp(pod, signal));
  }

  unfinished(podUid: string): readonly string[] {
    return this.#options.volumes.unfinished(podUid);
  }

  async tearDown(podUid: string, signal: AbortSignal): Promise<void> {
    await this.#options.volumes.tearDown(podUid, signal);
    await this.#options.userNamespaces?.release(podUid);
    this.#volumes.delete(podUid);
    this.#sandboxes.delete(podUid);
    this.#imageUsers.delete(podUid);
    this.#imageVolumes.forget(podUid);
    this.#handlers.delete(podUid);
  }

  async runtimeHandler(pod: Pod): Promise<string> {
    const handler = await this.#options.cluster.runtimeHandler(pod);
    this.#handlers.set(pod.metadata.uid, handler);
    return handler;
  }

  /** As {@link runtimeHandler}, as far as it is known without asking; else the runtime's default. */
  knownHandler(pod: Pod): string {
    return this.#handlers.get(pod.metadata.uid) ?? '';
  }

  async ensure({ pod, place, signal }: Parameters<ImageSupply['ensure']>[0]): Promise<ImageOutcome> {
    const { images, events, pullMessages, credentialsFor } = this.#options;
    const { container, fieldPath } = place;
    const image = container.image ?? '';
    const { onProgress, end } = pullMessages.follow(pod.metadata.uid, container.name, image);
    const outcome = await images
      .ensure(
        {
          podUid: pod.metadata.uid,
          image,
          credentials: () => credentialsFor(image, pod, signal),
          onProgress,
          policy: container.imagePullPolicy ?? 'IfNotPresent',
          // What is wrong with the sandbox is told where it is made; the image is the same.
          sandboxConfig: await this.#anySandbox(pod).catch(() => undefined),
          annotations: pod.metadata.annotations,
          onEvent: ({ type, reason, message }) => {
            events.event(podEventObject(pod, fieldPath), type, reason, message);
          },
        },
        signal,
      )
      .finally(end);
    if (!outcome.ok) return outcome;
    const ofVolumes = await this.#imageVolumes.ensure({
      pod,
      place,
      sandboxConfig: await this.#anySandbox(pod).catch(() => undefined),
      signal,
    });
    if (ofVolumes) return ofVolumes;
    const { uid } = pod.metadata;
    const users = this.#imageUsers.get(uid) ?? new Map<string, ImageUser>();
    this.#imageUsers.set(uid, users.set(outcome.imageRef, outcome.user));
    return outcome;
  }

  /** A pull cares for the pod, not for which of its sandboxes it is. */
  #anySandbox(pod: Pod): Promise<PodSandboxConfig> {
    const known = this.#sandboxes.get(pod.metadata.uid);
    return known?.pod === pod ? known.config : this.sandbox(pod, 0);
  }

  /** Worked out once for each sandbox; its containers are made with the very same message. */
  sandbox(pod: Pod, attempt: number): Promise<PodSandboxConfig> {
    const { uid } = pod.metadata;
    const known = this.#sandboxes.get(uid);
    if (known?.pod === pod && known.attempt === attempt) return known.config;
    const config = this.#sandbox(pod, attempt);
    this.#sandboxes.set(uid, { pod, attempt, config });
    // A failure is not kept: the next try may find what was missing.
    config.catch(() => {
      if (this.#sandboxes.get(uid)?.config === config) this.#sandboxes.delete(uid);
    });
    return config;
  }

  async #sandbox(pod: Pod, attempt: number): Promise<PodSandboxConfig> {
    const { dns, cgroupParentOf, directories, resources, sandboxAnnotations } = this.#options;
    const config = sandboxConfig({
      pod,
      attempt,
      hostname: podHostname(pod, dns.clusterDomain).kernelHostname,
      logDirectory: directories.logDirectory(pod),
      dns: await this.#dns(pod),
      cgroupParent: cgroupParentOf(pod),
      cpuQuota: resources.cpuQuota,
      userNamespace: await this.#userNamespace(pod),
    });
    return { ...config, annotations: { ...config.annotations, ...sandboxAnnotations } };
  }

  /** The ids of a pod with a user namespace of its own, the same for its sandbox and all its containers. */
  async #userNamespace(pod: Pod): Promise<UserNamespaceRange | undefined> {
    if (pod.spec.hostUsers !== false) return undefined;
    const { userNamespaces } = this.#options;
    const handler = await this.runtimeHandler(pod);
    if (!userNamespaces?.supports(handler)) {
      throw new UserNamespaceError(
        `RuntimeClass handler ${JSON.stringify(handler)} does not support user namespaces; ` +
          'it takes a runtime that does (containerd 2.0, CRI-O 1.25 or later with crun or runc 1.2), or hostUsers: true',
      );
    }
    return await userNamespaces.allocate(pod.metadata.uid);
  }

  async container(request: ContainerConfigRequest): Promise<ContainerConfig> {
    try {
      return await this.#container(request);
    } catch (error) {
      if (!configErrors.some((kind) => error instanceof kind)) throw error;
      throw new ContainerConfigError((error as Error).message, { cause: error });
    }
  }

  async #container(request: ContainerConfigRequest): Promise<ContainerConfig> {
    const { pod, place, attempt, sandbox, imageRef, nextBackoffMs, targetId, signal } = request;
    const { nodeName, nodeAddresses, nodeAllocatable, resources, security, stopSignals } = this.#options;
    const { cluster, volumes } = this.#options;
    const { container } = place;
    const readFile = (volume: string, path: string) => volumes.readFile(pod, volume, path);
    const [sources, serviceVariables] = await Promise.all([
      cluster.environment({ pod, container, readFile }, signal),
      cluster.serviceVariables(pod, signal),
    ]);
    const environment = buildEnvironment({
      pod,
      container,
      facts: { nodeName, hostIps: nodeAddresses(), podIps: sandbox.ips, nodeAllocatable },
      sources,
      serviceVariables,
    });
    return containerConfig({
      pod,
      container,
      restartCount: attempt,
      imageRef,
      imageUser: this.#imageUsers.get(pod.metadata.uid)?.get(imageRef) ?? {},
      environment,
      mounts: await this.#mounts({ pod, place, attempt, podIps: sandbox.ips, environment, signal }),
      annotations: { [nextBackoffAnnotation]: String(nextBackoffMs) },
      resources,
      security,
      userNamespace: await this.#userNamespace(pod),
      targetId,
      stopSignals,
    });
  }

  async #mounts(request: {
    pod: Pod;
    place: ContainerPlace;
    attempt: number;
    podIps: readonly string[];
    environment: ReadonlyMap<string, string>;
    signal: AbortSignal;
  }): Promise<ContainerMount[]> {
    const { pod, place, attempt, podIps, environment, signal } = request;
    const { container } = place;
    const { volumes, directories, recursiveReadOnly, selinux = false } = this.#options;
    const ofVolumes = await volumes.containerMounts(
      {
        pod,
        container,
        volumes: this.#volumes.get(pod.metadata.uid) ?? [],
        lookup: (name) => environment.get(name),
        recursiveReadOnlySupported: recursiveReadOnly(await this.runtimeHandler(pod)),
        imageReference: (volume) => this.#imageVolumes.reference(pod.metadata.uid, volume),
        selinuxEnabled: selinux,
      },
      signal,
    );
    const mounts: ContainerMount[] = [...ofVolumes];
    if (needsEtcHosts(pod.spec, container, podIps)) {
      mounts.push(etcHostsMount(await this.#writeHosts(pod, podIps), selinux));
    }
    if (!container.terminationMessagePath) return mounts;
    const message = await directories.createTerminationMessageFile(pod, container.name, attempt);
    return [...mounts, terminationLogMount(container, message, selinux)].filter(
      (mount) => mount !== undefined,
    );
  }

  async #writeHosts(pod: Pod, ips: readonly string[]): Promise<string> {
    const { hostAliases, hostNetwork } = pod.spec;
    const path = this.#options.directories.hostsFile(pod.metadata.uid);
    const content = hostNetwork
      ? hostNetworkHostsFile(await readFile('/etc/hosts', 'utf8'), hostAliases)
      : podHostsFile({ ...podHostname(pod, this.#options.dns.clusterDomain), ips, hostAliases });
    await writeHostsFile(path, content);
    return path;
  }

  async #dns(pod: Pod): Promise<PodSandboxConfig['dnsConfig']> {
    const { dns, resolvConf, events, nodeName } = this.#options;
    const host = resolvConf === undefined ? undefined : await readResolvConf(resolvConf);
    const { config, warnings } = podDnsConfig(pod, { ...dns, host });
    for (const { reason, message, nodeMessage } of warnings) {
      events.event(podEventObject(pod), 'Warning', reason, message);
      if (nodeMessage !== undefined) {
        events.event({ kind: 'Node', name: nodeName }, 'Warning', reason, nodeMessage);
      }
    }
    return { servers: [...config.servers], searches: [...config.searches], options: [...config.options] };
  }
}

async function readResolvConf(path: string): Promise<DnsConfig> {
  const { size } = await stat(path);
  if (size > maxResolvConfBytes) {
    throw new Error(
      `${path} has ${size} bytes, more than a resolv.conf may have; name another file with --resolv-conf`,
    );
  }
  return parseResolvConf(await readFile(path, 'utf8'));
}
