/** Rules for how a container uses the pod's volumes: mounted as directories, or as raw devices. */

import { checkDescendingPath, checkNoParent } from './path-rules.ts';
import { isBlank, type RuleContext } from './rule-context.ts';
import type { Container, VolumeMount } from './unvalidated-pod.ts';

export function checkVolumeMounts(context: RuleContext, path: string, container: Container): void {
  const { errors, volumes } = context;
  const devicePaths = new Set(container.volumeDevices?.map((device) => device.devicePath));
  const deviceNames = new Set(container.volumeDevices?.map((device) => device.name));
  const mountPaths = new Set<string>();
  container.volumeMounts?.forEach((mount, index) => {
    const at = `${path}[${index}]`;
    if (isBlank(mount.name)) errors.required(`${at}.name`);
    else {
      if (!volumes.has(mount.name)) errors.notFound(`${at}.name`, mount.name);
      if (deviceNames.has(mount.name)) {
        errors.invalid(`${at}.name`, mount.name, 'must not already exist in volumeDevices');
      }
    }
    // A colon is documented as forbidden, but no version of the API server has refused it.
    if (isBlank(mount.mountPath)) errors.required(`${at}.mountPath`);
    else {
      if (mountPaths.has(mount.mountPath))
        errors.invalid(`${at}.mountPath`, mount.mountPath, 'must be unique');
      if (devicePaths.has(mount.mountPath)) {
        errors.invalid(
          `${at}.mountPath`,
          mount.mountPath,
          'must not already exist as a path in volumeDevices',
        );
      }
      mountPaths.add(mount.mountPath);
    }
    checkSubPath(context, at, mount);
    checkPropagation(context, at, mount, container.securityContext?.privileged === true);
    checkRecursiveReadOnly(context, at, mount);
  });
}

function checkSubPath({ errors }: RuleContext, path: string, mount: VolumeMount): void {
  if (mount.subPath) checkDescendingPath(errors, `${path}.subPath`, mount.subPath);
  if (!mount.subPathExpr) return;
  if (mount.subPath) {
    errors.invalid(`${path}.subPathExpr`, mount.subPathExpr, 'may not be set together with subPath');
  }
  checkDescendingPath(errors, `${path}.subPathExpr`, mount.subPathExpr);
}

function checkPropagation(
  { errors }: RuleContext,
  path: string,
  mount: VolumeMount,
  privileged: boolean,
): void {
  if (mount.mountPropagation === undefined) return;
  const at = `${path}.mountPropagation`;
  errors.optionalOneOf(at, mount.mountPropagation, ['Bidirectional', 'HostToContainer', 'None']);
  if (mount.mountPropagation === 'Bidirectional' && !privileged) {
    errors.forbidden(at, 'Bidirectional mount propagation is available only to privileged containers');
  }
}

function checkRecursiveReadOnly({ errors }: RuleContext, path: string, mount: VolumeMount): void {
  const mode = mount.recursiveReadOnly;
  if (mode === undefined || mode === 'Disabled') return;
  const at = `${path}.recursiveReadOnly`;
  if (mode !== 'Enabled' && mode !== 'IfPossible') {
    errors.notSupported(at, mode, ['Disabled', 'Enabled', 'IfPossible']);
    return;
  }
  if (mount.readOnly !== true) errors.forbidden(at, 'may only be set when readOnly is true');
  if (mount.mountPropagation !== undefined && mount.mountPropagation !== 'None') {
    errors.forbidden(at, 'may only be set when mountPropagation is None or absent');
  }
}

export function checkVolumeDevices(context: RuleContext, path: string, container: Container): void {
  const { errors, volumes, spec } = context;
  const names = new Set<string>();
  const paths = new Set<string>();
  if ((container.volumeDevices?.length ?? 0) > 0 && spec.hostUsers === false) {
    errors.forbidden(path, 'raw devices may not be used when `hostUsers` is false');
  }
  container.volumeDevices?.forEach(({ name, devicePath }, index) => {
    const at = `${path}[${index}]`;
    if (isBlank(name)) errors.required(`${at}.name`);
    else {
      if (names.has(name)) errors.invalid(`${at}.name`, name, 'must be unique');
      names.add(name);
      const volume = volumes.get(name);
      if (!volume) errors.notFound(`${at}.name`, name);
      else if (!volume.persistentVolumeClaim && !volume.ephemeral) {
        errors.invalid(
          `${at}.name`,
          name,
          'only persistentVolumeClaim and ephemeral volumes can be raw devices',
        );
      }
    }
    if (isBlank(devicePath)) errors.required(`${at}.devicePath`);
    else {
      if (paths.has(devicePath)) errors.invalid(`${at}.devicePath`, devicePath, 'must be unique');
      paths.add(devicePath);
      checkNoParent(errors, `${at}.devicePath`, devicePath);
    }
  });
}
