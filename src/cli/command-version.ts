/** What `--version` and `version` print. */
import { KUBERNETES_VERSION } from '../config/kubernetes-version.ts';
import type { CommandResult } from './command-result.ts';

export interface ProductVersion {
  /** Our own version, from package.json. */
  readonly product: string;
  /** `process.version` */
  readonly node: string;
  /** `linux/x64` */
  readonly platform: string;
}

/** One line as every kubelet prints it; `raw` has every part. */
export function printVersion(form: 'true' | 'raw', version: ProductVersion): CommandResult {
  if (form === 'true') return said(`Kubernetes ${KUBERNETES_VERSION}\n`);
  const [, major, minor] = /^v(\d+)\.(\d+)/.exec(KUBERNETES_VERSION) ?? [];
  const parts = {
    Major: major,
    Minor: minor,
    GitVersion: KUBERNETES_VERSION,
    GoVersion: '',
    Compiler: `node ${version.node}`,
    Platform: version.platform,
  };
  const text = Object.entries(parts).map(([name, value]) => `${name}:${JSON.stringify(value)}`);
  return said(`version.Info{${text.join(', ')}}\n`);
}

export function commandVersion(version: ProductVersion): CommandResult {
  return said(
    [
      `kubelet-ts ${version.product}`,
      `Kubernetes ${KUBERNETES_VERSION}`,
      `Node.js ${version.node}`,
      `platform ${version.platform}`,
      '',
    ].join('\n'),
  );
}

function said(stdout: string): CommandResult {
  return { exitCode: 0, stdout, stderr: '' };
}
