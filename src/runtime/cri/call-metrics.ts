/** Counts and times the calls to the runtime under the names that the kubelet gives them. */
import type { Clock } from '../../concurrency/clock.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { RequestOf, RuntimeCall } from '../container-runtime.ts';

/** The `operation_type` of each call. */
const operationType: { readonly [Call in RuntimeCall]: string } = {
  version: 'version',
  status: 'status',
  runtimeConfig: 'runtime_config',
  updateRuntimeConfig: 'update_runtime_config',
  runPodSandbox: 'run_podsandbox',
  stopPodSandbox: 'stop_podsandbox',
  removePodSandbox: 'remove_podsandbox',
  podSandboxStatus: 'podsandbox_status',
  listPodSandbox: 'list_podsandbox',
  updatePodSandboxResources: 'update_podsandbox_resources',
  createContainer: 'create_container',
  startContainer: 'start_container',
  stopContainer: 'stop_container',
  removeContainer: 'remove_container',
  containerStatus: 'container_status',
  listContainers: 'list_containers',
  updateContainerResources: 'update_container',
  reopenContainerLog: 'reopen_container_log',
  checkpointContainer: 'checkpoint_container',
  execSync: 'exec_sync',
  exec: 'exec',
  attach: 'attach',
  portForward: 'port_forward',
  containerStats: 'container_stats',
  listContainerStats: 'list_container_stats',
  podSandboxStats: 'podsandbox_stats',
  listPodSandboxStats: 'list_podsandbox_stats',
  listMetricDescriptors: 'list_metric_descriptors',
  listPodSandboxMetrics: 'list_podsandbox_metrics',
  imageStatus: 'image_status',
  listImages: 'list_images',
  pullImage: 'pull_image',
  removeImage: 'remove_image',
  imageFsInfo: 'image_fs_info',
};

/** Twelve minutes in steps of two and a half: calls range from a list to a slow pull. */
const callBuckets = Array.from({ length: 14 }, (_, step) => 0.005 * 2.5 ** step);
const sandboxBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Wraps a call so that it is counted; one per registry. */
export type CallMeter = <Call extends RuntimeCall, Response>(
  call: Call,
  request: RequestOf<Call>,
  run: () => Promise<Response>,
) => Promise<Response>;

/**
 * Counts every call by operation as the kubelet's `kubelet_runtime_operations_*` metrics do: how many, how
 * long, how many failed.
 */
export function callMeter(metrics: Metrics, clock: Clock): CallMeter {
  const labels = ['operation_type'];
  const total = metrics.counter({
    name: 'kubelet_runtime_operations_total',
    help: 'Calls to the container runtime, by operation.',
    labels,
  });
  const errors = metrics.counter({
    name: 'kubelet_runtime_operations_errors_total',
    help: 'Failed calls to the container runtime, by operation.',
    labels,
  });
  const duration = metrics.histogram({
    name: 'kubelet_runtime_operations_duration_seconds',
    help: 'Duration of calls to the container runtime in seconds, by operation.',
    labels,
    buckets: callBuckets,
  });
  const sandboxDuration = metrics.histogram({
    name: 'kubelet_run_podsandbox_duration_seconds',
    help: 'Duration of RunPodSandbox in seconds, by runtime handler.',
    labels: ['runtime_handler'],
    buckets: sandboxBuckets,
  });
  const sandboxErrors = metrics.counter({
    name: 'kubelet_run_podsandbox_errors_total',
    help: 'Failed RunPodSandbox calls, by runtime handler.',
    labels: ['runtime_handler'],
  });
  return async (call, request, run) => {
    const operation = { operation_type: operationType[call] };
    const handler = 'runtimeHandler' in request ? { runtime_handler: request.runtimeHandler } : undefined;
    const start = clock.now();
    total.inc(operation);
    try {
      return await run();
    } catch (error) {
      errors.inc(operation);
      if (handler) sandboxErrors.inc(handler);
      throw error;
    } finally {
      const took = (clock.now() - start) / 1000;
      duration.observe(took, operation);
      if (handler) sandboxDuration.observe(took, handler);
    }
  };
}
