/**
 * Fills in the v1beta1 defaults. The order matters and is the kubelet's: a configuration file gets its
 * defaults before drop-ins and flags are laid over it.
 */
import { parseDurationNanos } from '../kubernetes/duration.ts';
import type { JsonObject, JsonValue } from '../kubernetes/yaml.ts';
import type { FeatureGates } from './feature-gates.ts';
import type { Field, Fields } from './field.ts';
import { CONFIGURATION_FIELDS } from './kubelet-configuration.ts';

/** `configuration` with every default filled in; the argument is left as it is. */
export function withDefaults(configuration: JsonObject): JsonObject {
  const given = structuredClone(configuration);
  const filled = fill(CONFIGURATION_FIELDS, given);
  // Who reports node status at a pace of their own wants unchanged status at that pace too.
  if (isUnset(CONFIGURATION_FIELDS.nodeStatusReportFrequency, given['nodeStatusReportFrequency'])) {
    if (!isUnset(CONFIGURATION_FIELDS.nodeStatusUpdateFrequency, given['nodeStatusUpdateFrequency'])) {
      filled['nodeStatusReportFrequency'] = given['nodeStatusUpdateFrequency']!;
    }
  }
  // Differs from the kubelet: pulls go side by side unless somebody wants them one by one, since otherwise
  // one slow registry holds up every pod.
  if (given['serializeImagePulls'] === undefined || given['serializeImagePulls'] === null) {
    filled['serializeImagePulls'] = false;
  }
  return filled;
}

/** Defaults that depend on feature gates; for when all gates are known. */
export function withGateDefaults(configuration: JsonObject, gates: FeatureGates): JsonObject {
  const filled = { ...configuration };
  if (gates.enabled('KubeletCrashLoopBackOffMax')) {
    const backOff = filled['crashLoopBackOff'] as JsonObject;
    filled['crashLoopBackOff'] = { maxContainerRestartPeriod: '5m', ...backOff };
  }
  if (gates.enabled('KubeletEnsureSecretPulledImages')) {
    filled['imagePullCredentialsVerificationPolicy'] ??= 'NeverVerifyPreloadedImages';
  }
  return filled;
}

/**
 * The configuration when there is no `--config`: some flags had other defaults before there were files,
 * and command lines without a file still count on them.
 */
export function configurationWithoutFile(): JsonObject {
  const configuration = withDefaults({});
  return {
    ...configuration,
    authentication: {
      ...(configuration['authentication'] as JsonObject),
      anonymous: { enabled: true },
      webhook: { enabled: false, cacheTTL: '2m' },
    },
    authorization: { ...(configuration['authorization'] as JsonObject), mode: 'AlwaysAllow' },
    readOnlyPort: 10255,
  };
}

function fill(fields: Fields, given: JsonObject): JsonObject {
  const filled: JsonObject = {};
  for (const [name, described] of Object.entries(fields)) {
    const value = given[name];
    if (described.members && value !== null && typeof value === 'object' && !Array.isArray(value)) {
      filled[name] = fill(described.members, value);
    } else if (described.members && described.default !== undefined) {
      filled[name] = fill(described.members, {});
    } else if (!isUnset(described, value)) filled[name] = value!;
    else if (described.default !== undefined) filled[name] = structuredClone(described.default);
  }
  return filled;
}

/** Absent; or zero in a field that cannot tell zero from absent. */
function isUnset(described: Field, value: JsonValue | undefined): boolean {
  if (value === undefined || value === null) return true;
  if (described.pointer || described.default === undefined) return false;
  if (described.type === 'duration' && typeof value === 'string') return parseDurationNanos(value) === 0n;
  return value === '' || value === 0;
}
