/**
 * Kubernetes events: what happened to an object, in words meant for the person who operates it. Reasons
 * and texts are the kubelet's own, so that tools that match on them keep working.
 */
export interface EventObject {
  kind: 'Pod' | 'Node';
  namespace?: string;
  name: string;
  uid?: string;
  /** Which part of the object, for example `spec.containers{web}`. */
  fieldPath?: string;
}

/** Takes events, as Kubernetes has them, and passes them on or keeps them; never throws and never waits. */
export interface EventRecorder {
  event(object: EventObject, type: 'Normal' | 'Warning', reason: string, message: string): void;
}

/** Forgets everything; for tests and for embedding. */
export const silentEvents: EventRecorder = { event() {} };

/** The event object of a pod, or of one container of it when `fieldPath` is given. */
export function podEventObject(
  pod: { metadata: { name: string; namespace: string; uid: string } },
  fieldPath?: string,
): EventObject {
  const { name, namespace, uid } = pod.metadata;
  return { kind: 'Pod', name, namespace, uid, ...(fieldPath === undefined ? {} : { fieldPath }) };
}
