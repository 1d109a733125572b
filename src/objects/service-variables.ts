/**
 * Environment variables that tell a container where services are: `<SVC>_SERVICE_HOST`,
 * `<SVC>_SERVICE_PORT` and the form that Docker's links had. Pure.
 */
import type { Service } from './object-types.ts';

/** The service of the API server itself; every pod is told of it. */
const masterService = { namespace: 'default', name: 'kubernetes' };

/**
 * Variables for a pod of `namespace`: of its own services when `enableServiceLinks`, and always of the API
 * server. Services without an address of their own (headless, ExternalName) have none.
 */
export function serviceVariables(
  services: Iterable<Service>,
  pod: { readonly namespace: string; readonly enableServiceLinks: boolean },
): Map<string, string> {
  const visible = new Map<string, Service>();
  let master: Service | undefined;
  for (const service of services) {
    const { namespace, name } = service.metadata ?? {};
    if (name === undefined || !hasAddress(service)) continue;
    if (namespace === pod.namespace && pod.enableServiceLinks) visible.set(name, service);
    if (namespace === masterService.namespace && name === masterService.name) master = service;
  }
  if (master && !visible.has(masterService.name)) visible.set(masterService.name, master);
  const variables = new Map<string, string>();
  for (const [name, service] of [...visible].sort(([a], [b]) => (a < b ? -1 : 1))) {
    addVariables(variables, variableName(name), service);
  }
  return variables;
}

function hasAddress({ spec }: Service): boolean {
  return Boolean(spec?.clusterIP) && spec?.clusterIP !== 'None';
}

function addVariables(variables: Map<string, string>, prefix: string, { spec }: Service): void {
  const { clusterIP: address = '', ports = [] } = spec ?? {};
  const [first] = ports;
  if (first === undefined) return;
  const host = address.includes(':') ? `[${address}]` : address;
  const url = ({ protocol = 'TCP', port }: (typeof ports)[number]) =>
    `${protocol.toLowerCase()}://${host}:${port}`;

  variables.set(`${prefix}_SERVICE_HOST`, address);
  variables.set(`${prefix}_SERVICE_PORT`, String(first.port));
  for (const { name, port } of ports) {
    if (name) variables.set(`${prefix}_SERVICE_PORT_${variableName(name)}`, String(port));
  }
  variables.set(`${prefix}_PORT`, url(first));
  for (const port of ports) {
    const protocol = port.protocol ?? 'TCP';
    const name = `${prefix}_PORT_${port.port}_${protocol.toUpperCase()}`;
    variables.set(name, url(port));
    variables.set(`${name}_PROTO`, protocol.toLowerCase());
    variables.set(`${name}_PORT`, String(port.port));
    variables.set(`${name}_ADDR`, address);
  }
}

function variableName(name: string): string {
  return name.toUpperCase().replaceAll('-', '_');
}
