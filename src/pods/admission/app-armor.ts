/**
 * Admission by AppArmor: a pod that relies on a profile must not run where nothing enforces it. Whether a
 * profile is loaded is not asked here: it may be loaded later, and the runtime tells when it is missing.
 */
import { appArmorFault, appArmorProfileOf } from '../../kubernetes/app-armor-profile.ts';
import { podContainers } from '../../kubernetes/init-containers.ts';
import type { AdmissionHandler } from './admission.ts';

/** Refuses profiles that this kernel cannot enforce. */
export const refuseAppArmor: AdmissionHandler = (pod, { node }) => {
  const profiles = [...podContainers(pod.spec)]
    .map(({ container }) => appArmorProfileOf(pod, container))
    .filter((profile) => profile !== undefined);
  const fromPod = pod.spec.securityContext?.appArmorProfile;
  const all = fromPod ? [...profiles, fromPod] : profiles;
  if (all.every(({ type }) => type === 'Unconfined')) return undefined;
  if (!node.appArmor) return cannotEnforce('AppArmor is not enabled on the host');
  const fault = all.map(appArmorFault).find((found) => found !== undefined);
  return fault === undefined ? undefined : cannotEnforce(fault);
};

const cannotEnforce = (why: string) => ({
  reason: 'AppArmor',
  message: `Cannot enforce AppArmor: ${why}`,
});
