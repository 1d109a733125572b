/**
 * Names what a runtime call is about, for errors and logs: what the request itself tells, so that a failure
 * can be read without looking an identifier up.
 */
interface Named {
  readonly metadata?: { readonly name: string; readonly namespace?: string } | undefined;
}

/** The fields of CRI requests that identify something; each request has some of them. */
interface Identifying {
  readonly containerId?: string;
  readonly podSandboxId?: string;
  readonly config?: Named | undefined;
  readonly sandboxConfig?: Named | undefined;
  readonly image?: { readonly image: string } | undefined;
}

/** Such as `container nginx of pod default/web`, `sandbox 3f2a…`, `image busybox`; empty for other calls. */
export function callSubject(request: object): string {
  const { containerId, podSandboxId, config, sandboxConfig, image } = request as Identifying;
  if (containerId) return `container ${shortId(containerId)}`;
  if (config?.metadata && sandboxConfig) {
    return `container ${config.metadata.name} of pod ${podName(sandboxConfig)}`;
  }
  if (config?.metadata) return `pod ${podName(config)}`;
  if (podSandboxId) return `sandbox ${shortId(podSandboxId)}`;
  if (image) return `image ${image.image}`;
  return '';
}

function podName({ metadata }: Named): string {
  return metadata ? `${metadata.namespace ?? ''}/${metadata.name}` : '';
}

function shortId(id: string): string {
  return id.slice(0, 13);
}
