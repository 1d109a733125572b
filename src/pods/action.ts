/**
 * What the agent can do for a pod. Each action carries its reason, in words for the log, the event and
 * whoever asks why.
 *
 * Actions with one key exclude each other: while one is carried out, no other with its key starts. What
 * has different keys may run side by side.
 */
export type Action =
  /** Write the pod's record, so that a restarted agent knows the pod without its source. */
  | { readonly kind: 'write-record'; readonly reason: string }
  /** Make the pod's directories and cgroup. */
  | { readonly kind: 'prepare-pod'; readonly reason: string }
  | { readonly kind: 'set-up-volumes'; readonly reason: string }
  | {
      readonly kind: 'ensure-image';
      readonly container: string;
      readonly attempt: number;
      readonly reason: string;
    }
  /** The pod would get its sandbox now, and there is no network: tell so, and look again later. */
  | { readonly kind: 'await-network'; readonly problem: string; readonly reason: string }
  | { readonly kind: 'create-sandbox'; readonly attempt: number; readonly reason: string }
  | { readonly kind: 'stop-sandbox'; readonly sandboxId: string; readonly reason: string }
  | { readonly kind: 'remove-sandbox'; readonly sandboxId: string; readonly reason: string }
  | {
      readonly kind: 'create-container';
      readonly container: string;
      readonly attempt: number;
      readonly sandboxId: string;
      readonly imageRef: string;
      /** Milliseconds the instance after this one has to wait; kept with the container. */
      readonly nextBackoffMs: number;
      readonly reason: string;
    }
  | {
      readonly kind: 'start-container';
      readonly container: string;
      readonly containerId: string;
      readonly reason: string;
    }
  /** The preStop hook, inside the grace period and before the container is told to stop. */
  | {
      readonly kind: 'run-pre-stop';
      readonly container: string;
      readonly containerId: string;
      readonly graceSeconds: number;
      readonly reason: string;
    }
  | {
      readonly kind: 'stop-container';
      readonly container: string;
      readonly containerId: string;
      /** A probe has failed; the end counts as a failure. */
      readonly byProbe?: boolean;
      readonly graceSeconds: number;
      readonly reason: string;
    }
  | {
      readonly kind: 'remove-container';
      readonly container: string;
      readonly containerId: string;
      /** The log of the instance stays; the one before it goes. */
      readonly keepsLog?: boolean;
      /** What the next instance is to take over from this one. */
      readonly next?: { readonly attempt: number; readonly backoffMs: number };
      readonly reason: string;
    }
  /** Take down volumes and cgroup of a pod that has ended. */
  | { readonly kind: 'tear-down'; readonly reason: string }
  /** Tell the API server the pod's end and delete its object there. */
  | { readonly kind: 'release-object'; readonly reason: string }
  /** Remove directories, logs and record: the last trace of the pod. */
  | { readonly kind: 'erase'; readonly reason: string };

/** The name of a kind of action. */
export type ActionKind = Action['kind'];
/** The action of one kind. */
export type ActionOf<Kind extends ActionKind> = Extract<Action, { kind: Kind }>;

/** The key that says what an action works on. */
export function actionKey(action: Action): string {
  switch (action.kind) {
    case 'write-record':
      return 'record';
    case 'prepare-pod':
    case 'tear-down':
    case 'erase':
      return 'pod';
    case 'set-up-volumes':
      return 'volumes';
    case 'release-object':
      return 'object';
    case 'ensure-image':
      return imageKey(action.container);
    case 'await-network':
    case 'create-sandbox':
      return 'sandbox';
    case 'stop-sandbox':
    case 'remove-sandbox':
      return sandboxKey(action.sandboxId);
    case 'create-container':
    case 'start-container':
    case 'run-pre-stop':
    case 'stop-container':
      return containerKey(action.container);
    case 'remove-container':
      return `remains/${action.containerId}`;
  }
}

/** {@link actionKey} of what is done for the image of a container. */
export const imageKey = (container: string) => `image/${container}`;
/** {@link actionKey} of what is done to a container, one instance after the other. */
export const containerKey = (container: string) => `container/${container}`;
/** {@link actionKey} of what is done to one sandbox. */
export const sandboxKey = (sandboxId: string) => `sandbox/${sandboxId}`;
