/**
 * One object that pods refer to and how the node stays up to date with it. There are two ways: a watch
 * ({@link WatchedObject}), and reading again and again ({@link PolledObject}).
 */

/** What is known of an object; `object` is absent when it does not exist. */
export interface KnownObject<T> {
  readonly object: T | undefined;
}

export interface FollowedObject<T> {
  /**
   * The object as it is known, at once where it is; `undefined` for one that does not exist. Rejects when
   * the server does not answer or refuses, or with the signal's reason.
   */
  get(signal: AbortSignal): Promise<T | undefined>;
  /** Another pod has begun to refer to the object. */
  used(): void;
  /** Lets go of the object. */
  stop(): void;
}

/** What both ways need of an object. */
export interface Followable {
  readonly metadata?: { readonly resourceVersion?: string } | undefined;
  /** The content of the object never changes again. */
  readonly immutable?: boolean;
}
