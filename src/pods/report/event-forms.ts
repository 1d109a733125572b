/**
 * How an event is written for the API server: in core v1, as a kubelet writes it, or in `events.k8s.io/v1`,
 * which keeps the same events under other names. Pure.
 */
import type { EventSeries } from './event-correlator.ts';

/** One way to write events. */
export interface EventForm {
  /** `v1` or `events.k8s.io/v1`. */
  readonly apiVersion: string;
  path(namespace: string): string;
  /** The body of a POST. */
  create(series: EventSeries, event: EventSignature): object;
  /** The strategic merge patch for repetitions of an event that is there. */
  repeat(series: EventSeries): object;
}

/** Who writes an event, and under which name. */
export interface EventSignature {
  readonly name: string;
  readonly namespace: string;
  readonly nodeName: string;
}

const component = 'kubelet';

export const coreForm: EventForm = {
  apiVersion: 'v1',
  path: (namespace) => `/api/v1/namespaces/${namespace}/events`,
  create: ({ news, message, count, firstAt, lastAt }, { name, namespace, nodeName }) => ({
    kind: 'Event',
    apiVersion: 'v1',
    metadata: { name, namespace },
    involvedObject: { ...news.object, apiVersion: 'v1' },
    type: news.type,
    reason: news.reason,
    message,
    source: { component, host: nodeName },
    reportingComponent: component,
    reportingInstance: nodeName,
    firstTimestamp: timestamp(firstAt),
    lastTimestamp: timestamp(lastAt),
    count,
  }),
  repeat: ({ message, count, lastAt }) => ({ message, count, lastTimestamp: timestamp(lastAt) }),
};

/** Of an event that is there, the server lets only the series be changed. */
export const seriesForm: EventForm = {
  apiVersion: 'events.k8s.io/v1',
  path: (namespace) => `/apis/events.k8s.io/v1/namespaces/${namespace}/events`,
  create: (series, { name, namespace, nodeName }) => ({
    kind: 'Event',
    apiVersion: 'events.k8s.io/v1',
    metadata: { name, namespace },
    regarding: { ...series.news.object, apiVersion: 'v1' },
    type: series.news.type,
    reason: series.news.reason,
    // The server wants one; a kubelet's events have no other word for what was done.
    action: series.news.reason,
    note: series.message,
    reportingController: component,
    reportingInstance: nodeName,
    eventTime: microTime(series.firstAt),
    ...(series.count > 1 && seriesForm.repeat(series)),
  }),
  repeat: ({ count, lastAt }) => ({ series: { count, lastObservedTime: microTime(lastAt) } }),
};

const timestamp = (ms: number) => `${new Date(ms).toISOString().slice(0, 19)}Z`;
const microTime = (ms: number) => `${new Date(ms).toISOString().slice(0, 23)}000Z`;
