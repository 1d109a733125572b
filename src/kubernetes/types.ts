/**
 * The object model on the wire: Kubernetes' published types as plain JSON.
 *
 * The client library's classes describe decoded objects (`Date` values, fields renamed with a leading
 * underscore). Node agents work on the JSON itself, so one mapped type turns every class into its wire
 * form. Types only: nothing is loaded at run time.
 */
import type {
  IntOrString as ClientIntOrString,
  V1Affinity,
  V1Container,
  V1ContainerPort,
  V1ContainerState,
  V1ContainerStatus,
  V1EmptyDirVolumeSource,
  V1EnvVar,
  V1EphemeralContainer,
  V1HostPathVolumeSource,
  V1Lifecycle,
  V1LifecycleHandler,
  V1ObjectMeta,
  V1OwnerReference,
  V1Pod,
  V1PodCondition,
  V1PodDNSConfig,
  V1PodSecurityContext,
  V1PodSpec,
  V1PodStatus,
  V1Probe,
  V1ResourceRequirements,
  V1SecurityContext,
  V1Toleration,
  V1Volume,
  V1VolumeMount,
} from '@kubernetes/client-node';

type WireKey<K> = K extends `_${infer Name}` ? Name : K;

/** The JSON form of a client class: dates are RFC 3339 strings, escaped names are the real ones. */
export type Wire<T> = T extends Date
  ? string
  : T extends (infer Item)[]
    ? Wire<Item>[]
    : T extends object
      ? { [K in keyof T as WireKey<K>]: Wire<T[K]> }
      : T;

export type IntOrString = ClientIntOrString;
export type ObjectMeta = Wire<V1ObjectMeta>;
export type OwnerReference = Wire<V1OwnerReference>;
export type PodSpec = Wire<V1PodSpec>;
export type PodStatus = Wire<V1PodStatus>;
export type PodCondition = Wire<V1PodCondition>;
export type Container = Wire<V1Container>;
export type EphemeralContainer = Wire<V1EphemeralContainer>;
export type ContainerPort = Wire<V1ContainerPort>;
export type ContainerState = Wire<V1ContainerState>;
export type ContainerStatus = Wire<V1ContainerStatus>;
export type EnvVar = Wire<V1EnvVar>;
export type Volume = Wire<V1Volume>;
export type VolumeMount = Wire<V1VolumeMount>;
export type EmptyDirVolumeSource = Wire<V1EmptyDirVolumeSource>;
export type HostPathVolumeSource = Wire<V1HostPathVolumeSource>;
export type Probe = Wire<V1Probe>;
export type Lifecycle = Wire<V1Lifecycle>;
export type LifecycleHandler = Wire<V1LifecycleHandler>;
export type ResourceRequirements = Wire<V1ResourceRequirements>;
export type SecurityContext = Wire<V1SecurityContext>;
export type PodSecurityContext = Wire<V1PodSecurityContext>;
export type PodDnsConfig = Wire<V1PodDNSConfig>;
export type Toleration = Wire<V1Toleration>;
export type Affinity = Wire<V1Affinity>;

/** Any pod as a source hands it in, before defaults and checks. */
export type PodManifest = Wire<V1Pod>;

/**
 * A pod the agent works with: it has passed defaulting and validation, so name, namespace and uid are
 * there and `spec` has the API server's defaults filled in.
 */
export interface Pod {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta & { name: string; namespace: string; uid: string };
  spec: PodSpec & { restartPolicy: string; terminationGracePeriodSeconds: number; dnsPolicy: string };
  status?: PodStatus;
}

export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort';
