/**
 * Metrics of Kubernetes 1.36 that the agent has not, each with the reason. Whoever adds one takes it off this
 * list and off the same list in docs/metrics.md; a test holds both equal to what the agent declares.
 */

const reasons: readonly (readonly [reason: string, ...names: string[]])[] = [
  [
    'there is no Go here; the `process_*` metrics tell of memory and processor time',
    'go_cgo_go_to_c_calls_calls_total',
    'go_gc_duration_seconds',
    'go_goroutines',
    'go_info',
    'go_memstats_*',
    'go_sched_*',
    'go_threads',
  ],
  [
    'of a library of API servers that writes audit logs',
    'apiserver_audit_event_total',
    'apiserver_audit_requests_rejected_total',
  ],
  ['no CSI yet', 'csi_operations_seconds', 'plugin_manager_total_plugins'],
  [
    'no dynamic resource allocation yet',
    'dra_grpc_operations_duration_seconds',
    'dra_operations_duration_seconds',
    'dra_resource_claims_in_use',
  ],
  [
    'metrics here are neither hidden nor switched off by their stability',
    'disabled_metrics_total',
    'hidden_metrics_total',
  ],
  ['watches here keep no store with a version of its own', 'informer_store_resource_version'],
  [
    'volumes are found again by their directories and mounts, without a phase of reconstruction',
    'force_cleaned_failed_volume_operation_errors_total',
    'force_cleaned_failed_volume_operations_total',
    'reconstruct_volume_operations_errors_total',
    'reconstruct_volume_operations_total',
  ],
  [
    'no CPU, memory, topology and device managers yet',
    'kubelet_container_aligned_compute_resources_count',
    'kubelet_container_aligned_compute_resources_failure_count',
    'kubelet_cpu_manager_allocation_per_numa',
    'kubelet_cpu_manager_exclusive_cpu_allocation_count',
    'kubelet_cpu_manager_pinning_errors_total',
    'kubelet_cpu_manager_pinning_requests_total',
    'kubelet_cpu_manager_shared_pool_size_millicores',
    'kubelet_device_plugin_alloc_duration_seconds',
    'kubelet_device_plugin_registration_total',
    'kubelet_memory_manager_pinning_errors_total',
    'kubelet_memory_manager_pinning_requests_total',
    'kubelet_pod_resources_endpoint_errors_get',
    'kubelet_pod_resources_endpoint_errors_get_allocatable',
    'kubelet_pod_resources_endpoint_errors_list',
    'kubelet_pod_resources_endpoint_requests_get',
    'kubelet_pod_resources_endpoint_requests_get_allocatable',
    'kubelet_pod_resources_endpoint_requests_list',
    'kubelet_pod_resources_endpoint_requests_total',
    'kubelet_topology_manager_admission_duration_ms',
    'kubelet_topology_manager_admission_errors_total',
    'kubelet_topology_manager_admission_requests_total',
    'resource_manager_allocation_errors_total',
    'resource_manager_allocations_total',
    'resource_manager_container_assignments',
  ],
  [
    'no resizing of running pods yet',
    'kubelet_container_requested_resizes_total',
    'kubelet_pod_deferred_accepted_resizes_total',
    'kubelet_pod_in_progress_resizes',
    'kubelet_pod_infeasible_resizes_total',
    'kubelet_pod_pending_resizes',
    'kubelet_pod_resize_duration_milliseconds',
  ],
  ['no eviction by signals of the node yet', 'kubelet_eviction_stats_age_seconds'],
  [
    'no graceful shutdown of the node yet',
    'kubelet_graceful_shutdown_end_time_seconds',
    'kubelet_graceful_shutdown_start_time_seconds',
  ],
  ['no watch of pods on the node yet', 'kubelet_pod_watch_events_dropped_total'],
  ['only CRI v1 is spoken, which loses no support', 'kubelet_cri_losing_support'],
  ['there is no queue of events that could overflow', 'kubelet_pleg_discard_events'],
  [
    'records of pulls are kept on disk only, without a cache of limited size',
    'kubelet_imagemanager_inmemory_pulledrecords_usage_percent',
    'kubelet_imagemanager_inmemory_pullintents_usage_percent',
  ],
  [
    'of Windows',
    'kubelet_started_host_process_containers_errors_total',
    'kubelet_started_host_process_containers_total',
  ],
  ['of provisioning and deleting volumes, which controllers do', 'volume_operation_total_seconds'],
  [
    'volumes are not mounted with a label of SELinux; the runtime relabels them',
    'volume_manager_selinux_container_errors_total',
    'volume_manager_selinux_container_warnings_total',
    'volume_manager_selinux_pod_context_mismatch_errors_total',
    'volume_manager_selinux_pod_context_mismatch_warnings_total',
    'volume_manager_selinux_volume_context_mismatch_errors_total',
    'volume_manager_selinux_volume_context_mismatch_warnings_total',
    'volume_manager_selinux_volumes_admitted_total',
  ],
  [
    'of the connection cache of the Go client; this one keeps one connection',
    'rest_client_transport_ca_reload_total',
    'rest_client_transport_cache_entries',
    'rest_client_transport_cache_gc_calls_total',
    'rest_client_transport_cert_rotation_gc_calls_total',
    'rest_client_transport_create_calls_total',
  ],
  [
    'of rules about which plugins may run, which only kubectl has',
    'rest_client_exec_plugin_policy_call_total',
  ],
  [
    'work here is woken by what has changed and waits in no queue',
    'workqueue_adds_total',
    'workqueue_depth',
    'workqueue_longest_running_processor_seconds',
    'workqueue_queue_duration_seconds',
    'workqueue_retries_total',
    'workqueue_unfinished_work_seconds',
    'workqueue_work_duration_seconds',
  ],
];

/** By name: why it is missing. */
export const missingMetrics: Readonly<Record<string, string>> = Object.fromEntries(
  reasons.flatMap(([reason, ...names]) => names.map((name) => [name, reason])),
);

/** Metrics that are there only where what they count is configured. */
export const occasionalMetrics: readonly string[] = [
  'kubelet_credential_provider_config_info',
  'kubelet_credential_provider_plugin_duration',
  'kubelet_credential_provider_plugin_errors_total',
  'kubelet_memory_qos_node_memory_low_bytes',
  'kubelet_memory_qos_node_memory_min_bytes',
  'kubelet_podcertificate_states',
  'rest_client_exec_plugin_call_total',
  'rest_client_exec_plugin_certificate_rotation_age',
  'rest_client_exec_plugin_ttl_seconds',
];
