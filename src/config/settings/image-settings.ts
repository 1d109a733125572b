/** Who may use which images, what they are pulled with, and when they are removed. */
import { parseDuration } from '../../kubernetes/duration.ts';
import type { KubeletConfiguration } from '../kubelet-configuration.ts';
import { absolute, type Loaded } from './loaded.ts';

export interface ImageSettings {
  /** Programs that know registry credentials; undefined when there are none. */
  readonly credentialProviders:
    | { readonly path: string; readonly binDirectory: string; readonly tokensEnabled: boolean }
    | undefined;
  /** Who may use images that are there already; undefined: everybody. */
  readonly verification:
    | {
        readonly policy: NonNullable<KubeletConfiguration['imagePullCredentialsVerificationPolicy']>;
        readonly allowlist: readonly string[];
      }
    | undefined;
  /** When images that nobody uses are removed; `maxAgeMs` 0: not for their age. */
  readonly collection: {
    readonly highPercent: number;
    readonly lowPercent: number;
    readonly minAgeMs: number;
    readonly maxAgeMs: number;
  };
}

export function imageSettings({ configuration, flags, gates }: Loaded, cwd: string): ImageSettings {
  const file = absolute(flags['image-credential-provider-config'], cwd);
  const binDirectory = absolute(flags['image-credential-provider-bin-dir'], cwd) ?? '';
  const tokensEnabled = gates.enabled('KubeletServiceAccountTokenForCredentialProviders');
  const policy = configuration.imagePullCredentialsVerificationPolicy;
  return {
    credentialProviders: file === undefined ? undefined : { path: file, binDirectory, tokensEnabled },
    verification: policy && {
      policy,
      allowlist: configuration.preloadedImagesVerificationAllowlist ?? [],
    },
    collection: {
      highPercent: configuration.imageGCHighThresholdPercent,
      lowPercent: configuration.imageGCLowThresholdPercent,
      minAgeMs: parseDuration(configuration.imageMinimumGCAge),
      maxAgeMs: parseDuration(configuration.imageMaximumGCAge),
    },
  };
}
