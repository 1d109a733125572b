/**
 * The published types as validation meets them: every value has its type (the structural pass saw to that),
 * but any field may be missing, also those that the API requires.
 */
import type * as published from '../types.ts';

type Unvalidated<T> = T extends (infer Item)[]
  ? Unvalidated<Item>[]
  : T extends object
    ? string extends keyof T
      ? T
      : { [K in keyof T]?: Unvalidated<T[K]> }
    : T;

export type IntOrString = published.IntOrString;
export type PodSpec = Unvalidated<published.PodSpec>;
export type ObjectMeta = Unvalidated<published.ObjectMeta>;
export type OwnerReference = Unvalidated<published.OwnerReference>;
export type Container = Unvalidated<published.Container>;
export type EphemeralContainer = Unvalidated<published.EphemeralContainer>;
export type ContainerPort = Unvalidated<published.ContainerPort>;
export type EnvVar = Unvalidated<published.EnvVar>;
export type Volume = Unvalidated<published.Volume>;
export type VolumeMount = Unvalidated<published.VolumeMount>;
export type Probe = Unvalidated<published.Probe>;
export type Lifecycle = Unvalidated<published.Lifecycle>;
export type LifecycleHandler = Unvalidated<published.LifecycleHandler>;
export type ResourceRequirements = Unvalidated<published.ResourceRequirements>;
export type SecurityContext = Unvalidated<published.SecurityContext>;
export type PodSecurityContext = Unvalidated<published.PodSecurityContext>;
export type PodDnsConfig = Unvalidated<published.PodDnsConfig>;
export type Toleration = Unvalidated<published.Toleration>;
export type Affinity = Unvalidated<published.Affinity>;
export type PodManifest = Unvalidated<published.PodManifest>;
