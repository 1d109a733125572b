/** Rules for volumes that a node provides by itself: directories, memory, images, repositories. */

import { checkDescendingPath, checkNoParent } from './path-rules.ts';
import { isBlank } from './rule-context.ts';
import type { VolumeRules } from './volume-rule.ts';

const hostPathTypes = [
  '',
  'DirectoryOrCreate',
  'Directory',
  'FileOrCreate',
  'File',
  'Socket',
  'CharDevice',
  'BlockDevice',
];

const pullPolicies = ['Always', 'IfNotPresent', 'Never'];

export const localVolumeRules: VolumeRules<'emptyDir' | 'hostPath' | 'image' | 'gitRepo'> = {
  emptyDir({ errors }, path, { medium = '', sizeLimit }) {
    if (sizeLimit?.startsWith('-')) errors.forbidden(`${path}.sizeLimit`, 'must not be negative');
    // Differs from the kubelet: there an unknown medium fails only when the volume is set up, again and again.
    if (
      medium !== '' &&
      medium !== 'Memory' &&
      medium !== 'HugePages' &&
      !/^HugePages-\d+[KMGTPE]i$/.test(medium)
    ) {
      errors.notSupported(`${path}.medium`, medium, ['', 'Memory', 'HugePages', 'HugePages-<size>']);
    }
  },
  hostPath({ errors }, path, source) {
    if (isBlank(source.path)) errors.required(`${path}.path`);
    else checkNoParent(errors, `${path}.path`, source.path);
    errors.optionalOneOf(`${path}.type`, source.type, hostPathTypes);
  },
  image({ errors }, path, { reference, pullPolicy }) {
    if (isBlank(reference)) errors.required(`${path}.reference`);
    else if (reference !== undefined && reference.trim() !== reference) {
      errors.invalid(`${path}.reference`, reference, 'must not begin or end with white space');
    }
    errors.optionalOneOf(`${path}.pullPolicy`, pullPolicy, pullPolicies);
  },
  gitRepo({ errors }, path, { repository, directory }) {
    if (isBlank(repository)) errors.required(`${path}.repository`);
    if (directory) checkDescendingPath(errors, `${path}.directory`, directory);
  },
};
