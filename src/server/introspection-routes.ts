/**
 * What the program says about itself: its configuration, flags, version and start, and how much it logs.
 * The agent tells what there is; nothing here looks for it.
 */
import type { Clock } from '../concurrency/clock.ts';
import { type Exchange, type NodeRoute } from './route.ts';
import { sendText } from './router.ts';

export interface Introspection {
  /** The KubeletConfiguration in force, as in its API. */
  readonly configuration: object;
  /** Flags as they are in force, by name without dashes. */
  readonly flags: Readonly<Record<string, string>>;
  /** `v1.36.0`. */
  readonly version: string;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  readonly setVerbosity: (verbosity: number) => void;
}

export interface IntrospectionInput {
  readonly about: Introspection;
  readonly clock: Clock;
  /** `enableDebugFlagsHandler`. */
  readonly changesVerbosity: boolean;
  /** Gates ComponentFlagz and ComponentStatusz. */
  readonly showsFlags: boolean;
  readonly showsStatus: boolean;
  /** Paths to tell in `/statusz`, the debugging ones left out. */
  readonly paths: () => readonly string[];
}

const highestVerbosity = 2 ** 31 - 1;

export function introspectionRoutes(input: IntrospectionInput): NodeRoute[] {
  const { about, clock, paths } = input;
  const routes: NodeRoute[] = [
    {
      methods: ['GET'],
      path: '/configz',
      debugging: true,
      handle: ({ response }) => sendDocument(response, 'application/json', { kubeletconfig: shown(about) }),
    },
    {
      path: '/debug/flags/v',
      debugging: true,
      handle: input.changesVerbosity
        ? (exchange) => changeVerbosity(exchange, about)
        : ({ response }) => sendText(response, 405, 'Debug endpoints are disabled.\n'),
    },
  ];
  if (input.showsFlags)
    routes.push(
      documentRoute('/flagz', 'Flagz', () => ({ text: about.flags, fields: { flags: about.flags } })),
    );
  if (input.showsStatus) {
    routes.push(
      documentRoute('/statusz', 'Statusz', () => {
        const uptimeSeconds = Math.floor((clock.now() - about.startedAt) / 1000);
        const startTime = new Date(about.startedAt).toISOString().replace(/\.\d+Z$/, 'Z');
        const binaryVersion = about.version.replace(/^v/, '');
        const goVersion = `node${process.version}`;
        return {
          text: {
            Started: startTime,
            'Up (seconds)': String(uptimeSeconds),
            'Go version': goVersion,
            'Binary version': binaryVersion,
            Paths: paths().join(' '),
          },
          fields: { startTime, uptimeSeconds, goVersion, binaryVersion, paths: paths() },
        };
      }),
    );
  }
  return routes;
}

/** Values of headers may be passwords. Differs from the kubelet, which shows them here. */
function shown({ configuration }: Introspection): object {
  const { staticPodURLHeader: headers } = configuration as { staticPodURLHeader?: Record<string, string[]> };
  if (!headers) return configuration;
  const masked = Object.fromEntries(Object.keys(headers).map((name) => [name, ['<masked>']]));
  return { ...configuration, staticPodURLHeader: masked };
}

async function changeVerbosity({ method, response, body }: Exchange, about: Introspection): Promise<void> {
  if (method !== 'PUT') return sendText(response, 406, 'only PUT sets the verbosity\n');
  const text = String(await body(1024)).trim();
  const verbosity = Number(text);
  if (!/^-?\d+$/.test(text) || Math.abs(verbosity) > highestVerbosity) {
    return sendText(response, 400, `${JSON.stringify(text)} is no verbosity: a whole number is\n`);
  }
  about.setVerbosity(verbosity);
  sendText(response, 200, `the verbosity of the log is ${verbosity} now\n`);
}

interface Document {
  /** Lines of `name=value` or `name: value`. */
  readonly text: Readonly<Record<string, string>>;
  readonly fields: object;
}

/** In text for people; in JSON or YAML for who asks for `config.k8s.io` by `Accept`. */
function documentRoute(path: string, kind: string, document: () => Document): NodeRoute {
  return {
    methods: ['GET'],
    path,
    handle({ response, headers }) {
      const asked = negotiated(headers.accept, kind);
      if (!asked) return sendText(response, 406, `${path} is text/plain, or ${kind} of config.k8s.io\n`);
      const { text, fields } = document();
      if (asked.type === 'text/plain') {
        const lines = Object.entries(text).map(([name, value]) => `${name}=${value}`);
        return sendText(
          response,
          200,
          `kubelet ${path.slice(1)}, for people to read\n\n${lines.join('\n')}\n`,
        );
      }
      const apiVersion = `config.k8s.io/${asked.version}`;
      sendDocument(response, asked.type, { kind, apiVersion, metadata: { name: 'kubelet' }, ...fields });
    },
  };
}

/** JSON, which is YAML as well. */
function sendDocument(response: Exchange['response'], type: string, value: unknown): void {
  const text = `${JSON.stringify(value)}\n`;
  response.writeHead(200, { 'content-type': type, 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

/** The first of the accepted types that there is. */
function negotiated(accept: string | undefined, kind: string): { type: string; version: string } | undefined {
  for (const entry of (accept?.trim() || '*/*').split(',')) {
    const [type = '', ...parameters] = entry.split(';').map((part) => part.trim());
    const values = Object.fromEntries(parameters.map((part) => part.split('=', 2)));
    if (['text/plain', 'text/*', '*/*'].includes(type)) return { type: 'text/plain', version: '' };
    const isDocument = type === 'application/json' || type === 'application/yaml';
    const { g: group, v: version = '', as = '' } = values as Record<string, string>;
    if (isDocument && group === 'config.k8s.io' && ['v1beta1', 'v1alpha1'].includes(version) && as === kind)
      return { type, version };
  }
  return undefined;
}
