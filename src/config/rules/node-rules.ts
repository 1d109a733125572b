/** Taints, shutdown, images, logging, TLS: rules that tie one field to another. */
import { parseDurationNanos } from '../../kubernetes/duration.ts';
import { checkLabelValue, checkQualifiedName } from '../../kubernetes/names.ts';
import type { Rule } from './rule.ts';

const imageCollection: Rule = (configuration, report) => {
  const { imageGCHighThresholdPercent: high, imageGCLowThresholdPercent: low } = configuration;
  if (low >= high)
    report(['imageGCLowThresholdPercent'], `must be below imageGCHighThresholdPercent (${high}), not ${low}`);
  const longest = parseDurationNanos(configuration.imageMaximumGCAge);
  if (longest > 0n && longest <= parseDurationNanos(configuration.imageMinimumGCAge)) {
    report(
      ['imageMaximumGCAge'],
      `must be longer than imageMinimumGCAge (${configuration.imageMinimumGCAge})`,
    );
  }
};

const imagePulls: Rule = (configuration, report) => {
  if ((configuration.maxParallelImagePulls ?? 1) > 1 && configuration.serializeImagePulls) {
    report(['maxParallelImagePulls'], 'above 1 needs serializeImagePulls: false');
  }
  const field = 'preloadedImagesVerificationAllowlist';
  const list = configuration[field] ?? [];
  const policy = configuration.imagePullCredentialsVerificationPolicy;
  if (list.length > 0 && policy !== 'NeverVerifyAllowlistedImages') {
    report([field], 'needs imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages');
  }
  for (const [index, pattern] of list.entries()) {
    const name = pattern.replace(/\/\*$/, '');
    if (name === '' || name.includes('*'))
      report([field, index], 'allows a * only as the last path element (/*)');
    else if (/@|:[^/]*$/.test(name)) report([field, index], 'must have no tag and no digest');
    else if (list.indexOf(pattern) < index) report([field, index], `${pattern} is listed twice`);
  }
};

const shutdown: Rule = (configuration, report) => {
  const total = parseDurationNanos(configuration.shutdownGracePeriod);
  const critical = parseDurationNanos(configuration.shutdownGracePeriodCriticalPods);
  if (critical > total) {
    report(
      ['shutdownGracePeriodCriticalPods'],
      `must not be longer than shutdownGracePeriod (${configuration.shutdownGracePeriod})`,
    );
  }
  const bands = configuration.shutdownGracePeriodByPodPriority ?? [];
  if (bands.length > 0 && (total > 0n || critical > 0n)) {
    report(
      ['shutdownGracePeriodByPodPriority'],
      'excludes shutdownGracePeriod and shutdownGracePeriodCriticalPods',
    );
  }
};

const taints: Rule = (configuration, report) => {
  const field = 'registerWithTaints';
  const seen = new Set<string>();
  for (const [index, taint] of (configuration[field] ?? []).entries()) {
    const [keyProblem] = checkQualifiedName(taint.key);
    if (keyProblem) report([field, index, 'key'], keyProblem);
    const [valueProblem] = checkLabelValue(taint.value ?? '');
    if (valueProblem) report([field, index, 'value'], valueProblem);
    if (taint.timeAdded !== undefined) report([field, index, 'timeAdded'], 'must not be given');
    const identity = `${taint.key}:${taint.effect}`;
    if (seen.has(identity)) report([field, index], `${identity} is listed twice`);
    seen.add(identity);
  }
};

const logging: Rule = ({ logging: { format, vmodule = [] } }, report) => {
  if (vmodule.length > 0 && format !== 'text')
    report(['logging', 'vmodule'], 'works only with the text format');
  for (const [index, { filePattern }] of vmodule.entries()) {
    if (filePattern === '' || /[=,]/.test(filePattern)) {
      report(['logging', 'vmodule', index, 'filePattern'], 'must not be empty and must not hold = or ,');
    }
  }
};

const serving: Rule = (configuration, report) => {
  if (configuration.enableSystemLogQuery && !configuration.enableSystemLogHandler) {
    report(['enableSystemLogQuery'], 'needs enableSystemLogHandler');
  }
  // Differs from the kubelet: half a key pair is refused at once, not when the server starts.
  if ((configuration.tlsCertFile === '') !== (configuration.tlsPrivateKeyFile === '')) {
    const missing = configuration.tlsCertFile === '' ? 'tlsCertFile' : 'tlsPrivateKeyFile';
    const present = missing === 'tlsCertFile' ? 'tlsPrivateKeyFile' : 'tlsCertFile';
    report([present], `needs ${missing}`);
  }
  const hidden = configuration.showHiddenMetricsForVersion;
  if (hidden !== '' && hidden !== PREVIOUS_MINOR) {
    report(['showHiddenMetricsForVersion'], `must be the previous minor version, ${PREVIOUS_MINOR}`);
  }
};

/** Metrics hidden in this release can be shown once more; older ones are gone. */
const PREVIOUS_MINOR = '1.35';

/** Rules of images, shutdown, taints, logging and serving. */
export const nodeRules: readonly Rule[] = [imageCollection, imagePulls, shutdown, taints, logging, serving];
