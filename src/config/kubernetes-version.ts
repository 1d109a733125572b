/** The Kubernetes release whose node agent this is: what `--version` and the node report. */
export const KUBERNETES_VERSION = 'v1.36.2';
