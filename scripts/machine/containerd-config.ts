/**
 * The configuration file of a private containerd, for the releases that differ: 1.6 and 1.7 (format 2),
 * 2.0 and later (format 3). Pure: facts in, TOML out.
 */

export interface ContainerdConfig {
  /** Release as [major, minor]. */
  release: readonly [number, number];
  root: string;
  state: string;
  socket: string;
  sandboxImage: string;
  snapshotter: string;
  cniPlugins: string;
  cniConfiguration: string;
  /** Path of the OCI runtime program. */
  runc: string;
  /** Where the OCI runtime keeps its state; by default it would be shared with the machine's own. */
  runcState: string;
  /** True where the process may not lower `oom_score_adj` (no CAP_SYS_RESOURCE). */
  restrictOomScore: boolean;
}

type Value = string | number | boolean | readonly string[];

/** A TOML table: its dotted header parts and its plain keys. */
interface Table {
  path: readonly string[];
  keys: Record<string, Value>;
}

// JSON's strings, numbers, booleans and flat lists are TOML's as well.
function toml(tables: readonly Table[]): string {
  return tables
    .map(({ path, keys }) => {
      const header = path.length === 0 ? '' : `[${path.map((part) => JSON.stringify(part)).join('.')}]\n`;
      return `${header}${Object.entries(keys)
        .map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`)
        .join('')}`;
    })
    .join('\n');
}

function common(config: ContainerdConfig, version: 2 | 3): Table[] {
  return [
    {
      path: [],
      keys: {
        version,
        root: config.root,
        state: config.state,
        // Snapshotters that probe for tools or devices which are not wanted here.
        disabled_plugins: ['aufs', 'btrfs', 'devmapper', 'zfs'].map(
          (name) => `io.containerd.snapshotter.v1.${name}`,
        ),
      },
    },
    { path: ['grpc'], keys: { address: config.socket } },
    { path: ['ttrpc'], keys: { address: `${config.socket}.ttrpc` } },
    { path: ['plugins', 'io.containerd.internal.v1.opt'], keys: { path: `${config.root}/opt` } },
  ];
}

function runtimeTables(config: ContainerdConfig, plugin: string): Table[] {
  const runtime = ['plugins', plugin, 'containerd', 'runtimes', 'runc'];
  return [
    { path: runtime, keys: { runtime_type: 'io.containerd.runc.v2' } },
    {
      path: [...runtime, 'options'],
      keys: { SystemdCgroup: false, BinaryName: config.runc, Root: config.runcState },
    },
  ];
}

function formatTwo(config: ContainerdConfig): Table[] {
  const plugin = 'io.containerd.grpc.v1.cri';
  return [
    ...common(config, 2),
    {
      path: ['plugins', plugin],
      keys: {
        sandbox_image: config.sandboxImage,
        restrict_oom_score_adj: config.restrictOomScore,
        disable_tcp_service: true,
        stream_server_address: '127.0.0.1',
        stream_server_port: '0',
        netns_mounts_under_state_dir: true,
      },
    },
    {
      path: ['plugins', plugin, 'cni'],
      keys: { bin_dir: config.cniPlugins, conf_dir: config.cniConfiguration, max_conf_num: 1 },
    },
    {
      path: ['plugins', plugin, 'containerd'],
      keys: { snapshotter: config.snapshotter, default_runtime_name: 'runc' },
    },
    ...runtimeTables(config, plugin),
  ];
}

function formatThree(config: ContainerdConfig): Table[] {
  const images = 'io.containerd.cri.v1.images';
  const runtime = 'io.containerd.cri.v1.runtime';
  const [major, minor] = config.release;
  const listsDirectories = major > 2 || minor >= 1;
  return [
    ...common(config, 3),
    // It would listen on one socket for the whole machine.
    { path: ['plugins', 'io.containerd.nri.v1.nri'], keys: { disable: true } },
    { path: ['plugins', images], keys: { snapshotter: config.snapshotter } },
    { path: ['plugins', images, 'pinned_images'], keys: { sandbox: config.sandboxImage } },
    {
      path: ['plugins', runtime],
      keys: { restrict_oom_score_adj: config.restrictOomScore, netns_mounts_under_state_dir: true },
    },
    {
      path: ['plugins', runtime, 'cni'],
      keys: {
        ...(listsDirectories ? { bin_dirs: [config.cniPlugins] } : { bin_dir: config.cniPlugins }),
        conf_dir: config.cniConfiguration,
        max_conf_num: 1,
      },
    },
    { path: ['plugins', runtime, 'containerd'], keys: { default_runtime_name: 'runc' } },
    ...runtimeTables(config, runtime),
    {
      path: ['plugins', 'io.containerd.grpc.v1.cri'],
      keys: { disable_tcp_service: true, stream_server_address: '127.0.0.1', stream_server_port: '0' },
    },
  ];
}

/** The text of `config.toml`. */
export function renderContainerdConfig(config: ContainerdConfig): string {
  return toml(config.release[0] >= 2 ? formatThree(config) : formatTwo(config));
}

/** Reads `containerd --version`, e.g. `containerd github.com/containerd/containerd 1.6.20~ds1 …`. */
export function parseContainerdRelease(text: string): [number, number] {
  const match = /\bv?(\d+)\.(\d+)\.\d+/.exec(text);
  if (match === null) throw new Error(`containerd --version gave no release number: ${text.trim()}`);
  return [Number(match[1]), Number(match[2])];
}
