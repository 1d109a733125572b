/** The headers of an httpGet probe: those of the Pod, in order, repeats kept, and the kubelet's own. */

/** A header of a probe's request (core/v1 HTTPHeader). */
export interface HttpHeader {
  readonly name: string;
  readonly value: string;
}

/** Framing is the client's business; a probe has no body. */
const framing = new Set(['content-length', 'transfer-encoding', 'trailer']);

/**
 * Name, value, name, value, … as Node takes them. `host` is the URL's; a `Host` among `given` takes its
 * place. `User-Agent` and `Accept` have defaults; given with an empty value they are not sent at all.
 */
export function probeHeaders(given: readonly HttpHeader[], host: string, userAgent: string): string[] {
  const first = (name: string) => given.find((header) => header.name.toLowerCase() === name)?.value;
  const agent = first('user-agent') ?? userAgent;
  const accept = first('accept') ?? '*/*';
  const headers = ['Host', hostHeader(given) ?? host];
  if (agent !== '') headers.push('User-Agent', agent);
  if (first('accept') === undefined) headers.push('Accept', accept);
  for (const { name, value } of given) {
    const lower = name.toLowerCase();
    if (lower === 'host' || lower === 'user-agent' || framing.has(lower)) continue;
    if (lower === 'accept' && accept === '') continue;
    headers.push(name, value);
  }
  return headers;
}

/** The value of the first `Host` header, when it is there and not empty. */
export function hostHeader(given: readonly HttpHeader[]): string | undefined {
  return given.find(({ name }) => name.toLowerCase() === 'host')?.value || undefined;
}
