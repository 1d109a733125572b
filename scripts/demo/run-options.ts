/**
 * The command line of `./run`: a few words of its own, everything else goes to the agent. Pure.
 */

export interface RunOptions {
  action: 'run' | 'stop' | 'help';
  /** Leave pods and containerd running on exit. */
  keep: boolean;
  /** For the agent, in their order. */
  kubeletFlags: string[];
}

export const usage = `Usage: sudo ./run [--keep] [any flag of the kubelet]
       sudo ./run --stop

Runs the node agent alone on the manifests in examples/pods, with a private containerd and pod network.
Installs what is missing first. Ctrl-C stops the pods and takes everything down again.

  --keep   leave the pods and containerd running on exit; the next ./run adopts them
  --stop   stop what --keep, or a run that was killed, left running
  --help   this text

Flags of the kubelet go over those that ./run sets, e.g.
  sudo ./run --pod-manifest-path=/etc/kubernetes/manifests -v=4
`;

/** Splits the arguments; each word of ./run may stand anywhere among the kubelet's flags. */
export function parseRunArguments(argv: readonly string[]): RunOptions {
  const options: RunOptions = { action: 'run', keep: false, kubeletFlags: [] };
  for (const argument of argv) {
    if (argument === '--keep') options.keep = true;
    else if (argument === '--stop') options.action = 'stop';
    else if (argument === '--help' || argument === '-h') options.action = 'help';
    else options.kubeletFlags.push(argument);
  }
  return options;
}

/**
 * The last value of a flag in either spelling (`--name=value`, `--name value`), `_` counting as `-`;
 * undefined when it is not there.
 */
export function flagValue(flags: readonly string[], name: string): string | undefined {
  let value: string | undefined;
  flags.forEach((flag, index) => {
    const [key = '', ...rest] = flag.split('=');
    if (!/^--?\w/.test(key) || key.replace(/^--?/, '').replaceAll('_', '-') !== name) return;
    value = rest.length > 0 ? rest.join('=') : flags[index + 1];
  });
  return value;
}

/** True when the agent ends by itself once every pod has run (`--runonce`, `--runonce=true`). */
export function runsOnce(flags: readonly string[]): boolean {
  return flags.some((flag) => /^--?run[-_]?once(=(true|t|1))?$/i.test(flag));
}

/** The flags under which the agent finds no pod to run and so ends those it finds running. */
export function drainFlags(flags: readonly string[], emptyDirectory: string): string[] {
  const kept = flags.filter((flag) => !/^--?run[-_]?once\b/.test(flag));
  const urls = flagValue(flags, 'manifest-url') === undefined ? [] : ['--manifest-url='];
  return [...kept, `--pod-manifest-path=${emptyDirectory}`, ...urls];
}
