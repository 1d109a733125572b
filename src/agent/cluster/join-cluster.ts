/**
 * Makes the node a member of the cluster that `--kubeconfig` leads to. Nothing here waits for the API
 * server: credentials come in the background, and until then the node keeps what it has.
 */
import { createReflectors } from '../../client/reflector.ts';
import { KUBERNETES_VERSION } from '../../config/kubernetes-version.ts';
import type { ClusterSettings } from '../../config/settings/cluster-settings.ts';
import { makePodKey } from '../../credentials/pod-key.ts';
import type { Pod } from '../../kubernetes/types.ts';
import { goArchitecture } from '../../node/machine-identity.ts';
import { ApiEvents, allEvents } from '../../pods/report/api-events.ts';
import type { EventRecorder } from '../../telemetry/events.ts';
import type { NodeAgentOptions } from '../agent-context.ts';
import type { MachineFacts } from '../node-facts.ts';
import { nodeResources } from '../node-resources.ts';
import { ClockWatch } from './clock-watch.ts';
import { ClusterNode } from './cluster-node.ts';
import { ClusterObjects } from './cluster-objects.ts';
import { ClusterPods } from './cluster-pods.ts';
import { DeferredApiClient } from './deferred-client.ts';
import { keepCredentials } from './keep-credentials.ts';
import type { Membership } from './membership.ts';
import { neededBy, OfflineCopies, objectMemory } from './offline-copies.ts';
import { OfflineObjects } from './offline-objects.ts';
import { rememberedPods } from './remembered-pods.ts';
import { ServingCertificateKeeper } from './serving-certificate-keeper.ts';
import { standAlone } from './stand-alone.ts';

export interface MembershipOptions
  extends Pick<NodeAgentOptions, 'settings' | 'featureEnabled' | 'clock' | 'logger' | 'metrics'> {
  readonly nodeName: string;
  readonly facts: MachineFacts;
  /** The node's own log of events. */
  readonly events: EventRecorder;
}

/** As the settings say. Throws when what they say of the node cannot be used. */
export function membershipOf(options: MembershipOptions): Membership {
  const { cluster, podCidrs } = options.settings;
  return cluster ? joinCluster(options, cluster) : standAlone(options.events, { ...options, podCidrs });
}

function joinCluster(options: MembershipOptions, cluster: ClusterSettings): Membership {
  const { settings, featureEnabled, nodeName, facts, clock, logger, metrics } = options;
  const random = Math.random;
  const client = new DeferredApiClient(clock);
  const createReflector = createReflectors({ client, clock, random, logger });
  const shared = { client, createReflector, nodeName, clock, random, logger, metrics };

  const apiEvents = new ApiEvents({ api: client, nodeName, clock, logger, ...cluster.events });
  const events = allEvents(options.events, apiEvents);
  const servingCertificate = cluster.serverTlsBootstrap
    ? new ServingCertificateKeeper({ ...shared, directory: cluster.certificateDirectory })
    : undefined;
  const copies = cluster.restorePodsOffline ? new OfflineCopies({ ...settings, clock, logger }) : undefined;
  const objects = new ClusterObjects({
    ...shared,
    memory: copies && objectMemory(copies),
    strategy: cluster.changeDetection,
    syncMs: settings.resyncMs,
    onChange: (podUids) => pods.referencesChanged(podUids),
    events,
    trustBundles: featureEnabled('ClusterTrustBundleProjection'),
    certificates: featureEnabled('PodCertificateRequest')
      ? { nodeName, nodeUid: () => node.uid, makeKey: makePodKey, events, metrics }
      : undefined,
  });
  const offline =
    copies && new OfflineObjects({ objects, copies, clock, onDue: (uid) => pods.referencesChanged([uid]) });
  const references = {
    register: (pod: Pod) => objects.register(pod),
    unregister(podUid: string) {
      objects.unregister(podUid);
      offline?.forget(podUid);
    },
  };
  const pods = new ClusterPods({ ...shared, nodeUid: () => node.uid, references });
  let nodeUid: string | undefined;
  const node = new ClusterNode({
    ...shared,
    settings: cluster,
    featureEnabled,
    facts,
    resources: nodeResources(facts, settings),
    events,
    onNode: (object) => {
      servingCertificate?.nodeChanged(object);
      if (object.metadata.uid !== nodeUid) pods.nodeChanged();
      nodeUid = object.metadata.uid;
    },
    onPlacement: () => pods.placementChanged(),
    onHostIps: () => pods.hostIpsChanged(),
  });
  return {
    api: client,
    servingCertificate,
    events,
    node,
    objects: offline ?? objects,
    pods,
    async remembered(records, observe) {
      const remembered = rememberedPods(records, observe, { offline: copies !== undefined });
      if (copies) await copies.load(neededBy(remembered));
      else await OfflineCopies.discard(settings.rootDirectory);
      return remembered;
    },
    attach: (rooms) => pods.attach(rooms),
    async run(signal) {
      objects.start();
      const clockWatch = new ClockWatch({ clock, logger });
      const userAgent = `kubelet/${KUBERNETES_VERSION} (linux/${goArchitecture(process.arch)})`;
      const credentials = {
        ...cluster,
        nodeName,
        client: {
          ...cluster.api,
          userAgent,
          clock,
          random,
          logger,
          metrics,
          onDate: (serverTime: number) => clockWatch.seen(serverTime),
        },
        use: client.use.bind(client),
      };
      await Promise.all([
        keepCredentials(credentials, signal),
        node.run(signal),
        servingCertificate?.run(signal),
      ]);
    },
    close() {
      pods.close();
      offline?.close();
      objects.close();
      node.close();
      apiEvents.close();
    },
  };
}
