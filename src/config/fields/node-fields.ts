/** The Node object, the API server, shutdown, gates, logging and tracing. */
import {
  bool,
  choice,
  duration,
  durationOrNanoseconds,
  integer,
  map,
  object,
  objects,
  optionalObject,
  quantity,
  required,
  text,
} from '../field.ts';
import {
  atLeast,
  between,
  collectorEndpoint,
  notEmpty,
  positiveDuration,
  zeroOrAtLeastOneSecond,
} from '../value-checks.ts';

/** Both log formats have the same settings. */
const streams = {
  infoBufferSize: quantity('Buffer for the info stream', { default: '0', gate: 'LoggingAlphaOptions' }),
  splitStream: bool('Errors to stderr and info to stdout', { default: false, gate: 'LoggingAlphaOptions' }),
};

export const nodeFields = {
  apiVersion: choice('string', ['kubelet.config.k8s.io/v1beta1'], 'Config file version'),
  contentType: text('Encoding of API server requests; they are in JSON whatever it says', {
    default: 'application/vnd.kubernetes.protobuf',
    check: notEmpty,
  }),
  eventBurst: integer('int32', 'Burst of event creations', { default: 100, check: atLeast(0) }),
  eventRecordQPS: integer('int32', 'Event creations per second', {
    default: 50,
    pointer: true,
    check: atLeast(0),
  }),
  featureGates: map('bool', 'Feature gate overrides'),
  kind: choice('string', ['KubeletConfiguration'], 'Config file kind'),
  kubeAPIBurst: integer('int32', 'API client burst', { default: 100, check: atLeast(0) }),
  kubeAPIQPS: integer('int32', 'API client queries per second', {
    default: 50,
    pointer: true,
    check: atLeast(0),
  }),
  logging: object('Log settings', {
    flushFrequency: durationOrNanoseconds('Log buffer flush period', {
      default: '5s',
      check: positiveDuration,
    }),
    format: choice('string', ['text', 'json'], 'Log output format', { default: 'text' }),
    options: object('Format specific settings', {
      json: object('JSON format settings', streams, { gate: 'LoggingAlphaOptions' }),
      text: object('Text format settings', streams, { gate: 'LoggingAlphaOptions' }),
    }),
    verbosity: integer('uint32', 'Log level', { default: 0, check: between(0, 2147483647) }),
    vmodule: objects('list(object)', 'Per-file log levels', {
      filePattern: required(text('Glob of source file names without extension')),
      verbosity: required(integer('uint32', 'Level for these files')),
    }),
  }),
  nodeLeaseDurationSeconds: integer('int32', 'Lease duration; renewed each quarter of it', {
    default: 40,
    check: atLeast(1),
  }),
  nodeStatusMaxImages: integer('int32', 'Images listed in node status', {
    default: 50,
    pointer: true,
    check: atLeast(-1),
  }),
  nodeStatusReportFrequency: duration('How often unchanged node status is posted', {
    default: '5m',
    check: positiveDuration,
  }),
  nodeStatusUpdateFrequency: duration('How often node status is computed', {
    default: '10s',
    check: positiveDuration,
  }),
  providerID: text('Cloud instance id written to node spec', { default: '' }),
  registerNode: bool('Create the Node object', { default: true, pointer: true }),
  registerWithTaints: objects('list(core/v1 Taint)', 'Taints put on the node when registering', {
    key: required(text('Taint key')),
    value: text('Taint value'),
    effect: required(
      choice('string', ['NoSchedule', 'PreferNoSchedule', 'NoExecute'], 'What the taint does'),
    ),
    timeAdded: text('Must not be given'),
  }),
  rotateCertificates: bool('Renew the client certificate through CSRs', { default: false }),
  showHiddenMetricsForVersion: text('Show metrics hidden since that version', { default: '' }),
  shutdownGracePeriod: duration('Total delay of node shutdown for pods', {
    default: '0s',
    gate: 'GracefulNodeShutdown',
    check: zeroOrAtLeastOneSecond,
  }),
  shutdownGracePeriodByPodPriority: objects(
    'list(object)',
    'Shutdown grace by priority band',
    {
      priority: required(
        integer('int32', 'Lowest priority of the band', { gate: 'GracefulNodeShutdownBasedOnPodPriority' }),
      ),
      shutdownGracePeriodSeconds: required(
        integer('int64', 'Grace of the band', { gate: 'GracefulNodeShutdownBasedOnPodPriority' }),
      ),
    },
    { gate: 'GracefulNodeShutdownBasedOnPodPriority' },
  ),
  shutdownGracePeriodCriticalPods: duration('Tail of the delay kept for critical pods', {
    default: '0s',
    gate: 'GracefulNodeShutdown',
    check: zeroOrAtLeastOneSecond,
  }),
  tracing: optionalObject('OpenTelemetry trace export', {
    endpoint: text('OTLP gRPC collector address', { pointer: true, check: collectorEndpoint }),
    samplingRatePerMillion: integer('int32', 'Root span sampling rate', {
      pointer: true,
      check: between(0, 1000000),
    }),
  }),
};
