/**
 * What a kind of volume has to offer to the rest of the room. A new kind is one file that implements
 * {@link VolumeKind} and one line in `volume-kinds.ts`.
 *
 * Taking a volume down needs no kind: everything a kind makes lies in the directories of the pod, so the
 * directories and the mount table say what to undo, even for pods nobody remembers.
 */
import type { Pod, Volume } from '../kubernetes/types.ts';

/** Names of volume sources: the fields of a volume beside its name. */
export type VolumeSourceName = Exclude<keyof Volume, 'name'>;

export interface VolumeSetUp<Source> {
  readonly pod: Pod;
  /** The volume's name in the pod. */
  readonly name: string;
  readonly source: Source;
  /** `<root>/pods/<uid>`; exists. */
  readonly podDirectory: string;
}

/** A volume containers can mount now. */
export interface MountedVolume {
  readonly name: string;
  readonly kind: VolumeSourceName;
  /** Where it is on the node; empty for an image volume, which is the runtime's. */
  readonly hostPath: string;
  /** Containers see it read-only whatever their mount says. */
  readonly readOnly: boolean;
  /** The agent made it and may give it the SELinux label of the pod. */
  readonly relabels: boolean;
}

export interface VolumeKind<Source> {
  /**
   * Makes the volume usable. Can be run again at any time, after success and after a crash at any line, and
   * never empties a volume that containers may have written to. Settles only when none of its work goes on.
   */
  setUp(volume: VolumeSetUp<Source>, signal: AbortSignal): Promise<MountedVolume>;
}

/** A volume of a pod cannot be set up for a reason that its manifest or the node gives. */
export class VolumeError extends Error {
  override readonly name: string = 'VolumeError';
  /** The volume's name in the pod. */
  readonly volume: string;
  constructor(volume: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.volume = volume;
  }
}

const supported = 'emptyDir, hostPath, image, configMap, secret, downwardAPI and projected';

/** The volume is of a kind this program does not have. */
export class UnsupportedVolumeError extends VolumeError {
  override readonly name = 'UnsupportedVolumeError';
  readonly kind: string;
  constructor(volume: string, kind: string) {
    super(
      volume,
      `volume "${volume}" is of the kind ${kind}, which is not supported yet; supported are ${supported}`,
    );
    this.kind = kind;
  }
}

/** The volume shows objects of the API, and this node has no API server. */
export class NeedsApiServerError extends VolumeError {
  override readonly name = 'NeedsApiServerError';
  constructor(volume: string, kind: string) {
    super(
      volume,
      `volume "${volume}" is of the kind ${kind}, which needs an API server, and this node runs without one; ` +
        'use hostPath or emptyDir, or join a cluster with --kubeconfig',
    );
  }
}
