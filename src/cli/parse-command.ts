/** Finds out what a command line asks for. Without a command word it asks for the agent itself. */
import type { ConfigurationError } from '../config/configuration-error.ts';
import type { GivenFlags } from '../config/flags/flags.ts';
import { parseArguments } from '../config/flags/parse-arguments.ts';
import { nearestName } from '../kubernetes/nearest-name.ts';

export type Command =
  | { readonly kind: 'help' }
  /** `form` is what `--version` was given: `true` (one line) or `raw` (every part). */
  | { readonly kind: 'print-version'; readonly form: 'true' | 'raw' }
  /** The `version` command: ours, Kubernetes' and Node's. */
  | { readonly kind: 'version' }
  /** The `doctor` command: what would stop this node. */
  | { readonly kind: 'doctor'; readonly output: 'text' | 'json'; readonly given: GivenFlags }
  | { readonly kind: 'config-validate'; readonly file: string; readonly given: GivenFlags }
  | {
      readonly kind: 'run';
      readonly given: GivenFlags;
      /** `--version=vX.Y.Z`: report this version instead of our own. */
      readonly reportedVersion?: string;
    }
  | { readonly kind: 'invalid'; readonly errors: readonly ConfigurationError[]; readonly given: GivenFlags };

const COMMANDS = ['config validate', 'doctor', 'version', 'help'];

/** `argv` without the executable. Never throws. */
export function parseCommand(argv: readonly string[]): Command {
  const asked = argv[0] === 'doctor' ? takeOutput(argv) : { argv, output: 'text' };
  const { given, words, errors } = parseArguments(asked.argv);
  const invalid = (...more: ConfigurationError[]): Command => ({
    kind: 'invalid',
    errors: [...errors, ...more],
    given,
  });

  if (given.help || words[0] === 'help') return { kind: 'help' };
  if (errors.length === 0 && (given.version === 'true' || given.version === 'raw')) {
    return { kind: 'print-version', form: given.version };
  }
  const [first, second, file, ...surplus] = words;
  if (first === undefined) {
    if (errors.length > 0) return invalid();
    const reported = given.version?.startsWith('v') ? given.version : undefined;
    return { kind: 'run', given, ...(reported !== undefined && { reportedVersion: reported }) };
  }
  if (first === 'version' && second === undefined) return errors.length > 0 ? invalid() : { kind: 'version' };
  if (first === 'doctor' && second === undefined) {
    const { output } = asked;
    if (output !== 'text' && output !== 'json')
      return invalid({ message: `-o takes text or json, not ${JSON.stringify(output)}` });
    return errors.length > 0 ? invalid() : { kind: 'doctor', output, given };
  }
  if (first === 'config' && second === 'validate') {
    if (file === undefined || surplus.length > 0)
      return invalid({ message: 'config validate takes one FILE' });
    if (given.config !== undefined) return invalid({ flag: 'config', message: 'is the FILE itself here' });
    return errors.length > 0 ? invalid() : { kind: 'config-validate', file, given };
  }
  const written = words.slice(0, 2).join(' ');
  const nearest = nearestName(written, COMMANDS) ?? nearestName(first, COMMANDS);
  const hint = first === 'config' ? 'config validate' : nearest;
  return invalid({
    message: `unknown command ${JSON.stringify(written)}${hint ? `; did you mean "${hint}"?` : ''}`,
  });
}

/** Takes `-o FORM`, `-o=FORM`, `--output FORM` and `--output=FORM` out; the kubelet itself has no such flag. */
function takeOutput(argv: readonly string[]): { argv: readonly string[]; output: string } {
  const rest: string[] = [];
  let output = 'text';
  for (let at = 0; at < argv.length; at++) {
    const [, form] = /^(?:-o|--output)(?:=(.*))?$/.exec(argv[at]!) ?? [];
    if (!/^(?:-o|--output)(?:=|$)/.test(argv[at]!)) rest.push(argv[at]!);
    else output = form ?? argv[++at] ?? '';
  }
  return { argv: rest, output };
}
